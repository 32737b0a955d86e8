// Preloaded into user-mode Linux where the power of the machine is to be cut: before a write of the machine reaches the file that is its
// first disk, what it replaces is added to a log, and so is every flush. By the log the file can be taken back to what a disk with a
// volatile cache could have had (`../cut/log.rs` reads it).
//
// The disk driver gives all requests of the machine to one process of its own (it shares the kernel's memory), over a pipe. That one does
// them one after the other and then writes them back to another pipe, by which the machine learns that they are done. Here it
// gets them one by one, and what they do is in the log before they are written back. A flush is known by what it does: nothing. The
// driver takes it for done, as its disk is a file of the host, which does not lose power; so does the log outlive the machine.
// Disks of the machine that are not logged must have no flushes, therefore (`../guest/state.rs`).
//
// The log is two files. Behind a flush, one that has grown to LIMIT is left and the other one is begun again: what is behind the last
// flush, and at least LIMIT bytes before it, is always there.
//
// That process has a stack of one page: nothing is allocated, and no C library is used but for `errno`.

typedef unsigned long word;

#define READ 0L
#define WRITE 1L
#define OPEN 2L
#define STAT 4L
#define FSTAT 5L
#define PREAD 17L
#define PWRITE 18L
#define PROCESS 39L
#define TRUNCATE 77L
#define CLOCK 228L
#define EXIT 231L
#define FALLOCATE 285L

#define LIMIT (64UL << 20)
// O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC
#define EMPTIED 02001102L
#define INTERRUPTED -4L
#define NO_SPACE 28

// What begins a file of the log, and a record in it.
struct head {
    word magic, generation;
};
struct record {
    word kind, offset, length, time;
};
#define MAGIC 0x31676f6c6b736964UL
#define WRITTEN 0x6574697277UL
#define FLUSHED 0x6873756c66UL

extern int *__errno_location(void);

// Device and inode of the disk; 0 for none.
static word device, inode;
static long files[2];
static word generation, position;
static char part[65536];
// The process of the kernel, and that of the disk driver.
static long kernels, drivers;
// Whether the driver has a request that has not done anything yet.
static int idle;

static long kernel(long number, long first, long second, long third, long fourth)
{
    register long last __asm__("r10") = fourth;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(last)
                     : "rcx", "r11", "memory");
    return result;
}

static long result_of(long result)
{
    if (result < 0) {
        *__errno_location() = (int)-result;
        return -1;
    }
    return result;
}

static void say(const char *text)
{
    word length = 0;
    while (text[length])
        length++;
    kernel(WRITE, 2, (long)text, (long)length, 0);
}

static int is_disk(int file)
{
    word facts[18];
    return inode && kernel(FSTAT, file, (long)facts, 0, 0) == 0 && facts[0] == device && facts[1] == inode;
}

// Adds to the log; whether there was room.
static int add(const void *data, word length)
{
    const char *from = data;
    while (length) {
        long done = kernel(PWRITE, files[generation % 2], (long)from, (long)length, (long)position);
        if (done == INTERRUPTED)
            continue;
        if (done <= 0)
            return 0;
        from += done;
        length -= (word)done;
        position += (word)done;
    }
    return 1;
}

static int add_record(word kind, word offset, word length)
{
    struct record record = {kind, offset, length, 0};
    word now[2] = {0, 0};
    kernel(CLOCK, 1, (long)now, 0, 0);
    record.time = now[0] * 1000000000UL + now[1];
    return add(&record, sizeof(record));
}

// Begins a file of the log.
static int begin_file(void)
{
    generation++;
    position = 0;
    struct head head = {MAGIC, generation};
    return kernel(TRUNCATE, files[generation % 2], 0, 0, 0) == 0 && add(&head, sizeof(head));
}

// Adds what a write replaces; whether there was room. What does not fit whole is taken away.
static int keep(int disk, word offset, word length)
{
    word begun = position;
    int kept = add_record(WRITTEN, offset, length);
    while (kept && length) {
        word most = length < sizeof(part) ? length : sizeof(part);
        long read = kernel(PREAD, disk, (long)part, (long)most, (long)offset);
        if (read == INTERRUPTED)
            continue;
        kept = read > 0 && add(part, (word)read);
        offset += (word)read;
        length -= (word)read;
    }
    if (!kept) {
        kernel(TRUNCATE, files[generation % 2], (long)begun, 0, 0);
        position = begun;
        say("benchmaster: the host has no space for the log of the server's disk: a write has failed\n");
    }
    return kept;
}

// What is called by the driver is no flush.
static void busy(void)
{
    if (idle && kernel(PROCESS, 0, 0, 0, 0) == drivers)
        idle = 0;
}

long pread64(int file, void *data, word length, long offset)
{
    busy();
    return result_of(kernel(PREAD, file, (long)data, (long)length, offset));
}

long pwrite64(int file, const void *data, word length, long offset)
{
    busy();
    if (is_disk(file) && !keep(file, (word)offset, length))
        return result_of(-NO_SPACE);
    return result_of(kernel(PWRITE, file, (long)data, (long)length, offset));
}

int fallocate64(int file, int mode, long offset, long length)
{
    busy();
    if (is_disk(file) && !keep(file, (word)offset, (word)length))
        return (int)result_of(-NO_SPACE);
    return (int)result_of(kernel(FALLOCATE, file, mode, offset, length));
}

// A request is a pointer. Only the driver's process reads several at once; others read single bytes.
long read(int file, void *data, word length)
{
    long process = 0;
    if (length > sizeof(word) && length % sizeof(word) == 0 && (process = kernel(PROCESS, 0, 0, 0, 0)) != kernels)
        length = sizeof(word);
    else
        process = 0;
    long result = kernel(READ, file, (long)data, (long)length, 0);
    if (process && result == sizeof(word)) {
        drivers = process;
        idle = 1;
    }
    return result_of(result);
}

// Without a record of it the disk loses more than it should, which is what has to be said.
static void flushed(void)
{
    word begun = position;
    if (!add_record(FLUSHED, 0, 0)) {
        kernel(TRUNCATE, files[generation % 2], (long)begun, 0, 0);
        position = begun;
        say("benchmaster: the host has no space for the log of the server's disk: a flush is missing in it\n");
    } else if (position > LIMIT) {
        word end = position;
        if (!begin_file()) {
            // It goes on in the one that has grown.
            generation--;
            position = end;
        }
    }
}

long write(int file, const void *data, word length)
{
    if (idle && length == sizeof(word) && kernel(PROCESS, 0, 0, 0, 0) == drivers) {
        idle = 0;
        flushed();
    }
    return result_of(kernel(WRITE, file, (long)data, (long)length, 0));
}

static const char *value(char **environment, const char *name)
{
    for (; *environment; environment++) {
        word at = 0;
        while (name[at] && (*environment)[at] == name[at])
            at++;
        if (!name[at] && (*environment)[at] == '=')
            return *environment + at + 1;
    }
    return "";
}

__attribute__((constructor)) static void begin(int count, char **arguments, char **environment)
{
    (void)count;
    (void)arguments;
    word facts[18];
    files[0] = kernel(OPEN, (long)value(environment, "BENCHMASTER_DISK_LOG_0"), EMPTIED, 0600, 0);
    files[1] = kernel(OPEN, (long)value(environment, "BENCHMASTER_DISK_LOG_1"), EMPTIED, 0600, 0);
    long disk = kernel(STAT, (long)value(environment, "BENCHMASTER_DISK"), (long)facts, 0, 0);
    if (disk < 0 || files[0] < 0 || files[1] < 0 || !begin_file()) {
        say("benchmaster: the log of the server's disk cannot be made\n");
        kernel(EXIT, 1, 0, 0, 0);
    }
    device = facts[0];
    inode = facts[1];
    kernels = kernel(PROCESS, 0, 0, 0, 0);
}
