// uml COMMAND...: runs user-mode Linux on processors with AMX.
//
// Their extended state is larger than the buffer that Linux 6.1 in user mode has for it, so that it reads the registers of its
// processes but cannot write them back, and dies with the first one. Where PTRACE_GETREGSET of the extended state fails it uses
// the older PTRACE_GETFPREGS, with the registers up to XMM: programs in the guest must not use AVX then (see machines.sh).
#include <errno.h>
#include <linux/elf.h>
#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)

int main(int argc, char **argv)
{
    struct sock_filter filter[] = {
        WORD(nr), UNLESS(SYS_ptrace, 5),
        WORD(args[0]), UNLESS(PTRACE_GETREGSET, 3),
        WORD(args[2]), UNLESS(NT_X86_XSTATE, 1),
        ANSWER(SECCOMP_RET_ERRNO | EINVAL),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    if (argc < 2)
        return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("seccomp");
        return 1;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
