set $dir=/tmp
set $nfiles=1000
set $meansize=16k
define fileset name=bigfileset,path=$dir,size=$meansize,entries=$nfiles,dirwidth=20,prealloc=80
define process name=server,instances=1
{
  thread name=worker,memsize=10m,instances=4
  {
    flowop createfile name=create,filesetname=bigfileset,fd=1
    flowop writewholefile name=write,srcfd=1,fd=1,iosize=1m
    flowop closefile name=close,fd=1
    flowop openfile name=open,filesetname=bigfileset,fd=2
    flowop readwholefile name=read,fd=2,iosize=1m
    flowop closefile name=close2,fd=2
    flowop statfile name=stat,filesetname=bigfileset
    flowop deletefile name=delete,filesetname=bigfileset
    flowop finishoncount name=finish,value=1000
  }
}
run 60
