// Preloaded into user-mode Linux on processors whose extended state (of AVX, AVX-512, AMX) is larger than the buffer that it
// has for it, which is that of AVX-512 with its protection keys: 2,696 bytes. There the kernel of the host takes the state of a
// process only whole, so that user-mode Linux reads registers and cannot write them back.
//
// Reading gives the first part of the whole; writing puts the first part in front of zeros. What is behind it are the tiles of AMX,
// which a program has only after asking for them (arch_prctl), and user-mode Linux refuses that: the part's own header says
// that they are not in use.
//
// User-mode Linux reads the registers of a program whenever it stops, and writes them before it goes on. What was read and has not
// changed is not written: a third of what a system call of a program costs.
//
// It uses nothing but `errno` of the C library, so that no header and no library is needed to build it.

#define GETREGSET 0x4204L
#define SETREGSET 0x4205L
#define EXTENDED_STATE 0x202L
#define PTRACE 101L
#define LARGEST 65536UL
#define PART 4096UL
#define GETREGS 12L
#define SETREGS 13L
#define GETSIGINFO 0x4202L

struct part {
    unsigned char *start;
    unsigned long length;
};

extern int *__errno_location(void);

// Only one thread of user-mode Linux, the one that runs the processors, traces.
static unsigned char state[LARGEST] __attribute__((aligned(64)));
// Bytes of the whole.
static unsigned long size;
// What was read last, of a process that has not run since; 0 for none.
static unsigned char last[PART] __attribute__((aligned(64)));
static unsigned long last_length;
static long last_process;

static long kernel(long request, long process, long address, void *data)
{
    register void *fourth __asm__("r10") = data;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(PTRACE), "D"(request), "S"(process), "d"(address), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

static void copy(unsigned char *to, const unsigned char *from, unsigned long length)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

static int is_last(long process, const struct part *asked)
{
    const unsigned long *one = (const unsigned long *)last, *other = (const unsigned long *)asked->start;
    unsigned long differing = 0;
    if (process != last_process || asked->length != last_length)
        return 0;
    for (unsigned long at = 0; at < last_length / sizeof(long); at++)
        differing |= one[at] ^ other[at];
    return differing == 0;
}

static long get(long process, struct part *asked)
{
    if (process == last_process && asked->length == last_length) {
        copy(asked->start, last, last_length);
        return 0;
    }
    last_process = 0;
    long result = kernel(GETREGSET, process, EXTENDED_STATE, asked);
    if (result == 0 && asked->length <= PART) {
        copy(last, asked->start, asked->length);
        last_length = asked->length;
        last_process = process;
    }
    return result;
}

static long set(long process, const struct part *asked)
{
    if (is_last(process, asked))
        return 0;
    last_process = 0;
    struct part whole = {state, LARGEST};
    if (size == 0) {
        long result = kernel(GETREGSET, process, EXTENDED_STATE, &whole);
        if (result < 0)
            return result;
        size = whole.length;
        for (unsigned long at = 0; at < size; at++)
            state[at] = 0;
    }
    whole.length = size;
    copy(state, asked->start, asked->length < size ? asked->length : size);
    return kernel(SETREGSET, process, EXTENDED_STATE, &whole);
}

long ptrace(long request, long process, long address, void *data)
{
    request &= 0xffffffffL;
    process = (int)process;
    long result;
    long word;
    if ((request == GETREGSET || request == SETREGSET) && (address & 0xffffffffL) == EXTENDED_STATE) {
        result = request == GETREGSET ? get(process, data) : set(process, data);
    } else if (request >= 1 && request <= 3) {
        // The three that peek give the word as their result, as the C library does.
        result = kernel(request, process, address, &word);
        if (result == 0) {
            *__errno_location() = 0;
            return word;
        }
    } else {
        // All others may let it run.
        if (request != GETREGS && request != SETREGS && request != GETSIGINFO)
            last_process = 0;
        result = kernel(request, process, address, data);
    }
    if (result < 0) {
        *__errno_location() = (int)-result;
        return -1;
    }
    return result;
}
