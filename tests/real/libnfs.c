/* Scenarios on libnfs, which calls the server from user space: client URL SCENARIO NAME (of a directory to make and to remove).
 * Says on standard error what was wrong; exit status 0 means that all was right. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nfsc/libnfs.h>

static struct nfs_context *nfs;
static const char *url, *top;
static int version;

static void fail(int line, const char *what, const char *why)
{
    fprintf(stderr, "line %d: %s: %s\n", line, what, why);
    exit(1);
}
/* The call must succeed, or must fail with exactly this error. */
#define MUST(call) do { if ((call) < 0) fail(__LINE__, #call, nfs_get_error(nfs)); } while (0)
#define MUST_FAIL(call, error) do { int status_ = (call); if (status_ != -(error)) \
    fail(__LINE__, #call ", expected " #error, status_ < 0 ? strerror(-status_) : "it succeeded"); } while (0)
#define WHOLE(call, length) do { int count_ = (call); if (count_ != (int)(length)) \
    fail(__LINE__, #call, count_ < 0 ? nfs_get_error(nfs) : "short"); } while (0)
#define EXPECT(condition) do { if (!(condition)) fail(__LINE__, "not so", #condition); } while (0)

static struct nfs_context *mount_url(void)
{
    struct nfs_context *context = nfs_init_context();
    struct nfs_url *parsed = context ? nfs_parse_url_dir(context, url) : NULL;
    if (!parsed)
        fail(__LINE__, url, "cannot be parsed");
    if (nfs_mount(context, parsed->server, parsed->path) < 0)
        fail(__LINE__, url, nfs_get_error(context));
    nfs_destroy_url(parsed);
    return context;
}

/* A path below the scenario's directory; two may be in use at once. */
static const char *in(const char *name)
{
    static char paths[2][512];
    static int turn;
    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], *name ? "/%s/%s" : "/%s", top, name);
    return paths[turn];
}

static void put(const char *name, const char *text)
{
    struct nfsfh *file;
    /* With version 4, nfs_creat of libnfs 4.0 opens for reading. */
    MUST(nfs_open2(nfs, in(name), O_CREAT | O_TRUNC | O_WRONLY, 0644, &file));
    WHOLE(nfs_pwrite(nfs, file, 0, strlen(text), text), strlen(text));
    MUST(nfs_close(nfs, file));
}

static void has(const char *name, const char *text)
{
    char got[256];
    struct nfsfh *file;
    MUST(nfs_open(nfs, in(name), O_RDONLY, &file));
    int length = nfs_pread(nfs, file, 0, sizeof got, got);
    MUST(length);
    EXPECT((size_t)length == strlen(text) && !memcmp(got, text, (size_t)length));
    MUST(nfs_close(nfs, file));
}

static struct nfs_stat_64 status_of(const char *name)
{
    struct nfs_stat_64 st;
    MUST(nfs_lstat64(nfs, in(name), &st));
    return st;
}

static void attributes(void)
{
    struct timeval times[2] = { { 1000000000, 123456 }, { 2000000000, 654321 } };
    put("file", "content");
    struct nfs_stat_64 st = status_of("file");
    EXPECT(S_ISREG(st.nfs_mode) && st.nfs_size == 7 && st.nfs_nlink == 1 && st.nfs_ino != 0);
    MUST(nfs_chmod(nfs, in("file"), 0604));
    MUST(nfs_utimes(nfs, in("file"), times));
    st = status_of("file");
    EXPECT((st.nfs_mode & 07777) == 0604);
    EXPECT(st.nfs_atime == 1000000000 && st.nfs_atime_nsec == 123456000);
    EXPECT(st.nfs_mtime == 2000000000 && st.nfs_mtime_nsec == 654321000);
    uint64_t inode = st.nfs_ino;
    MUST(nfs_rename(nfs, in("file"), in("renamed")));
    EXPECT(status_of("renamed").nfs_ino == inode);
    MUST(nfs_unlink(nfs, in("renamed")));
    struct nfs_stat_64 directory;
    MUST(nfs_stat64(nfs, "/", &directory));
    EXPECT(S_ISDIR(directory.nfs_mode));
    struct nfs_statvfs_64 space;
    MUST(nfs_statvfs64(nfs, "/", &space));
    EXPECT(space.f_blocks > 0 && space.f_bsize > 0);
}

static void names(void)
{
    struct nfsfh *file;
    struct nfs_stat_64 st;
    char longest[257];
    memset(longest, 'n', 256);
    longest[256] = 0;
    MUST_FAIL(nfs_mkdir(nfs, in(longest)), ENAMETOOLONG);
    longest[255] = 0;
    MUST(nfs_mkdir(nfs, in(longest)));
    MUST(nfs_rmdir(nfs, in(longest)));
    put("file", "x");
    MUST(nfs_mkdir(nfs, in("d")));
    MUST(nfs_mkdir(nfs, in("d/sub")));
    MUST_FAIL(nfs_stat64(nfs, in("none"), &st), ENOENT);
    MUST_FAIL(nfs_open(nfs, in("none"), O_RDONLY, &file), ENOENT);
    MUST_FAIL(nfs_open(nfs, in("none/file"), O_RDONLY, &file), ENOENT);
    MUST_FAIL(nfs_mkdir(nfs, in("d")), EEXIST);
    MUST_FAIL(nfs_rmdir(nfs, in("d")), ENOTEMPTY);
    if (version == 3) /* version 4 has one operation for files and directories, and libnfs does not look */
        MUST_FAIL(nfs_rmdir(nfs, in("file")), ENOTDIR);
    MUST_FAIL(nfs_unlink(nfs, in("none")), ENOENT);
    MUST_FAIL(nfs_rename(nfs, in("none"), in("x")), ENOENT);
    MUST_FAIL(nfs_open2(nfs, in("file"), O_CREAT | O_EXCL | O_WRONLY, 0644, &file), EEXIST);
    MUST(nfs_open2(nfs, in("exclusive"), O_CREAT | O_EXCL | O_WRONLY, 0640, &file));
    MUST(nfs_close(nfs, file));
    put("other", "replaced");
    MUST(nfs_rename(nfs, in("other"), in("file")));
    has("file", "replaced");
    MUST_FAIL(nfs_stat64(nfs, in("other"), &st), ENOENT);
    MUST(nfs_unlink(nfs, in("file")));
    MUST(nfs_unlink(nfs, in("exclusive")));
    MUST(nfs_rmdir(nfs, in("d/sub")));
    MUST(nfs_rmdir(nfs, in("d")));
}

static void links(void)
{
    char target[64] = "";
    put("file", "linked");
    MUST(nfs_link(nfs, in("file"), in("second")));
    EXPECT(status_of("file").nfs_nlink == 2 && status_of("file").nfs_ino == status_of("second").nfs_ino);
    MUST_FAIL(nfs_link(nfs, in("file"), in("second")), EEXIST);
    MUST(nfs_unlink(nfs, in("file")));
    EXPECT(status_of("second").nfs_nlink == 1);
    has("second", "linked");
    MUST(nfs_symlink(nfs, "second", in("soft")));
    MUST(nfs_readlink(nfs, in("soft"), target, sizeof target));
    EXPECT(!strcmp(target, "second"));
    EXPECT(S_ISLNK(status_of("soft").nfs_mode));
    has("soft", "linked");
    if (version == 3) { /* libnfs has it for version 3 only */
        MUST(nfs_mknod(nfs, in("fifo"), S_IFIFO | 0644, 0));
        EXPECT(S_ISFIFO(status_of("fifo").nfs_mode));
        MUST(nfs_unlink(nfs, in("fifo")));
    }
    MUST(nfs_unlink(nfs, in("soft")));
    MUST(nfs_unlink(nfs, in("second")));
}

static int entries(const char *path, const char *format, int count, int type)
{
    struct nfsdir *directory;
    char *seen = calloc((size_t)count, 1);
    int found = 0;
    EXPECT(seen != NULL);
    MUST(nfs_opendir(nfs, path, &directory));
    for (struct nfsdirent *e; (e = nfs_readdir(nfs, directory));) {
        int i;
        if (!strcmp(e->name, ".") || !strcmp(e->name, ".."))
            continue;
        if (sscanf(e->name, format, &i) != 1 || i < 0 || i >= count || seen[i]++)
            fail(__LINE__, "unexpected or repeated entry", e->name);
        EXPECT((int)(e->mode & S_IFMT) == type || e->mode < 01000); /* some versions give the permissions only */
        EXPECT(e->inode != 0 || version == 4); /* libnfs asks for it with version 3 only */
        found++;
    }
    nfs_closedir(nfs, directory);
    free(seen);
    return found;
}

static void directories(void)
{
    char name[32];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "sub-%d", i);
        MUST(nfs_mkdir2(nfs, in(name), 0711));
        EXPECT((status_of(name).nfs_mode & 07777) == 0711);
    }
    EXPECT(entries(in(""), "sub-%d", 30, S_IFDIR) == 30);
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "sub-%d", i);
        MUST(nfs_rmdir(nfs, in(name)));
    }
    EXPECT(entries(in(""), "sub-%d", 30, S_IFDIR) == 0);
}

static void many_files(void)
{
    enum { COUNT = 2500 };
    char name[32];
    struct nfsfh *file;
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "file-%d", i);
        MUST(nfs_creat(nfs, in(name), 0644, &file));
        MUST(nfs_close(nfs, file));
    }
    EXPECT(entries(in(""), "file-%d", COUNT, S_IFREG) == COUNT);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "file-%d", i);
        MUST(nfs_unlink(nfs, in(name)));
    }
    EXPECT(entries(in(""), "file-%d", COUNT, S_IFREG) == 0);
}

static void positions(void)
{
    char got[16];
    struct nfsfh *file;
    uint64_t at;
    MUST(nfs_open2(nfs, in("file"), O_CREAT | O_RDWR, 0644, &file));
    WHOLE(nfs_write(nfs, file, 5, "01234"), 5);
    WHOLE(nfs_write(nfs, file, 5, "56789"), 5);
    WHOLE(nfs_pwrite(nfs, file, 20, 3, "end"), 3);
    WHOLE(nfs_pread(nfs, file, 8, 16, got), 15);
    EXPECT(!memcmp(got, "89\0\0\0\0\0\0\0\0\0\0end", 15));
    WHOLE(nfs_pread(nfs, file, 23, 16, got), 0);
    WHOLE(nfs_pread(nfs, file, 1000000, 16, got), 0);
    MUST(nfs_lseek(nfs, file, -3, SEEK_END, &at));
    EXPECT(at == 20);
    WHOLE(nfs_read(nfs, file, 3, got), 3);
    EXPECT(!memcmp(got, "end", 3));
    MUST(nfs_fsync(nfs, file));
    MUST(nfs_close(nfs, file));
    MUST(nfs_open(nfs, in("file"), O_WRONLY | O_APPEND, &file));
    WHOLE(nfs_write(nfs, file, 4, "more"), 4);
    MUST(nfs_close(nfs, file));
    EXPECT(status_of("file").nfs_size == 27);
    MUST(nfs_unlink(nfs, in("file")));
}

static void truncation(void)
{
    struct nfsfh *file;
    put("file", "0123456789");
    MUST(nfs_truncate(nfs, in("file"), 4));
    has("file", "0123");
    MUST(nfs_open(nfs, in("file"), O_RDWR, &file));
    MUST(nfs_ftruncate(nfs, file, 100));
    char got[100];
    WHOLE(nfs_pread(nfs, file, 0, 100, got), 100);
    EXPECT(!memcmp(got, "0123", 4) && !got[4] && !memcmp(got + 4, got + 5, 95));
    MUST(nfs_close(nfs, file));
    MUST(nfs_open(nfs, in("file"), O_WRONLY | O_TRUNC, &file));
    MUST(nfs_close(nfs, file));
    EXPECT(status_of("file").nfs_size == 0);
    MUST(nfs_unlink(nfs, in("file")));
}

static void large(void) /* across 4 GiB, sparse */
{
    enum { BLOCK = 3000, BLOCKS = 1000 }; /* with version 4, libnfs 4.0 cannot encode a WRITE of 4 KiB */
    static unsigned char block[BLOCK], got[BLOCK];
    uint64_t start = (4ull << 30) - (uint64_t)BLOCK * BLOCKS / 2 - 100;
    struct nfsfh *file;
    MUST(nfs_open2(nfs, in("file"), O_CREAT | O_RDWR, 0644, &file));
    for (int i = 0; i < BLOCKS; i++) {
        for (int j = 0; j < BLOCK; j++)
            block[j] = (unsigned char)(i * 7 + j * 13 + j / 256);
        WHOLE(nfs_pwrite(nfs, file, start + (uint64_t)i * BLOCK, BLOCK, block), BLOCK);
    }
    MUST(nfs_close(nfs, file));
    EXPECT(status_of("file").nfs_size == start + (uint64_t)BLOCK * BLOCKS);
    MUST(nfs_open(nfs, in("file"), O_RDONLY, &file));
    for (int i = 0; i < BLOCKS; i++) {
        for (int j = 0; j < BLOCK; j++)
            block[j] = (unsigned char)(i * 7 + j * 13 + j / 256);
        WHOLE(nfs_pread(nfs, file, start + (uint64_t)i * BLOCK, BLOCK, got), BLOCK);
        EXPECT(!memcmp(block, got, BLOCK));
    }
    memset(block, 0, BLOCK);
    WHOLE(nfs_pread(nfs, file, 1ull << 31, BLOCK, got), BLOCK);
    EXPECT(!memcmp(block, got, BLOCK));
    MUST(nfs_close(nfs, file));
    MUST(nfs_unlink(nfs, in("file")));
}

/* Another client is another process: libnfs names itself by that. Gives 0 in it. */
static pid_t other_client(void)
{
    fflush(stderr);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0)
        nfs = mount_url();
    return child;
}
static void ends_well(pid_t child)
{
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Whoever runs this: permissions are those of the ids in the call's credential. One mount per refusal, because libnfs 4.0
 * does not count refused OPENs among the owner's requests. */
static void as_other(int action)
{
    pid_t child = other_client();
    struct nfsfh *file;
    if (child) {
        ends_well(child);
        return;
    }
    nfs_set_uid(nfs, 4242);
    nfs_set_gid(nfs, 4242);
    switch (action) {
    case 0: has("public", "seen"); break;
    case 1: MUST_FAIL(nfs_open(nfs, in("private"), O_RDONLY, &file), EACCES); break;
    case 2: MUST_FAIL(nfs_open(nfs, in("public"), O_WRONLY, &file), EACCES); break;
    case 3: MUST_FAIL(nfs_creat(nfs, in("new"), 0644, &file), EACCES); break;
    case 4: MUST_FAIL(nfs_unlink(nfs, in("public")), EACCES); break;
    case 5: EXPECT(nfs_chmod(nfs, in("public"), 0777) < 0); break;
    }
    exit(0);
}
static void access_rights(void)
{
    put("public", "seen");
    MUST(nfs_chmod(nfs, in("public"), 0644));
    put("private", "hidden");
    MUST(nfs_chmod(nfs, in("private"), 0600));
    for (int action = 0; action <= 5; action++)
        as_other(action);
    EXPECT((status_of("public").nfs_mode & 07777) == 0644);
    MUST(nfs_unlink(nfs, in("public")));
    MUST(nfs_unlink(nfs, in("private")));
}

static struct nfs4_flock range(int type, uint64_t start, uint64_t length)
{
    return (struct nfs4_flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
}

static void other_client_locks(uint64_t start, int expected)
{
    pid_t child = other_client();
    if (child) {
        ends_well(child);
        return;
    }
    struct nfsfh *file;
    struct nfs4_flock lock = range(F_WRLCK, start, 10);
    MUST(nfs_open(nfs, in("file"), O_RDWR, &file));
    int got = nfs_fcntl(nfs, file, NFS4_F_SETLK, &lock) >= 0;
    EXPECT(got == expected);
    lock = range(F_UNLCK, start, 10);
    if (got)
        MUST(nfs_fcntl(nfs, file, NFS4_F_SETLK, &lock));
    exit(0);
}

/* One LOCKU, and the files stay open: libnfs 4.0 does not learn from LOCKU's result nor count LOCK among the owner's requests. */
static void locks(void)
{
    struct nfs4_flock lock = range(F_WRLCK, 10, 10);
    struct nfsfh *file;
    put("file", "0123456789012345678901234567890123456789");
    MUST(nfs_open(nfs, in("file"), O_RDWR, &file));
    MUST(nfs_fcntl(nfs, file, NFS4_F_SETLK, &lock));
    other_client_locks(15, 0);
    other_client_locks(1, 0);
    other_client_locks(0, 1);
    other_client_locks(20, 1);
    lock = range(F_UNLCK, 10, 10);
    MUST(nfs_fcntl(nfs, file, NFS4_F_SETLK, &lock));
    other_client_locks(10, 1);
    MUST(nfs_unlink(nfs, in("file")));
}

static const struct { const char *name; void (*run)(void); } scenarios[] = {
    { "attributes", attributes }, { "names", names }, { "links", links }, { "directories", directories }, { "many_files", many_files },
    { "positions", positions }, { "truncation", truncation }, { "large", large }, { "access", access_rights }, { "locks", locks },
};

int main(int count, char **arguments)
{
    for (size_t i = 0; count == 4 && i < sizeof scenarios / sizeof *scenarios; i++)
        if (!strcmp(arguments[2], scenarios[i].name)) {
            url = arguments[1];
            top = arguments[3];
            version = strstr(url, "version=4") ? 4 : 3;
            nfs = mount_url();
            MUST(nfs_mkdir2(nfs, in(""), 0755));
            scenarios[i].run();
            MUST(nfs_rmdir(nfs, in("")));
            nfs_destroy_context(nfs);
            return 0;
        }
    fprintf(stderr, "usage: client URL SCENARIO NAME\n");
    return 2;
}
