/* One static program with the system calls that shell commands cannot make, or whose outcome they do not check.
 * Every verb tests what it did and says on standard error what was wrong; exit status 0 means that all was right.
 * Content is a function of the offset (and a seed), so a byte in the wrong place is seen without keeping a copy. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1 << 20 };

static void fail(const char *format, ...)
{
    int error = errno;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (error)
        fprintf(stderr, " (%s)", strerror(error));
    fputc('\n', stderr);
    exit(1);
}

/* The call must succeed, or must fail with exactly this error. */
#define MUST(call) do { errno = 0; if ((call) < 0) fail("line %d: %s", __LINE__, #call); } while (0)
#define MUST_FAIL(call, error) do { errno = 0; if ((call) >= 0) { errno = 0; fail("line %d: %s succeeded, expected " #error, __LINE__, #call); } \
    if (errno != (error)) fail("line %d: %s: expected " #error, __LINE__, #call); } while (0)
#define EXPECT(condition) do { errno = 0; if (!(condition)) fail("line %d: not so: %s", __LINE__, #condition); } while (0)

static long long number(const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 0);
    switch (*end) {
    case 'G': value <<= 10; /* fall through */
    case 'M': value <<= 10; /* fall through */
    case 'K': value <<= 10; end++; break;
    }
    errno = 0;
    if (*end)
        fail("not a number: %s", text);
    return value;
}

static int open_file(const char *path, int flags)
{
    errno = 0;
    int file = open(path, flags, 0644);
    if (file < 0)
        fail("open %s", path);
    return file;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static unsigned char content(long long offset, long seed)
{
    return (unsigned char)(mix((uint64_t)offset / 8 + (uint64_t)seed * 0x9e3779b97f4a7c15u) >> (offset % 8 * 8));
}

static void fill(unsigned char *buffer, size_t length, long long offset, long seed)
{
    for (size_t i = 0; i < length; i++)
        buffer[i] = content(offset + (long long)i, seed);
}

static void write_all(int file, const void *data, size_t length, long long offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = pwrite(file, (const char *)data + done, length - done, offset + (long long)done);
        if (n <= 0)
            fail("write of %zu bytes at %lld", length - done, offset + (long long)done);
        done += (size_t)n;
    }
}

static void read_all(int file, void *data, size_t length, long long offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = pread(file, (char *)data + done, length - done, offset + (long long)done);
        if (n == 0)
            errno = 0;
        if (n <= 0)
            fail("read of %zu bytes at %lld: %s", length - done, offset + (long long)done, n ? "error" : "end of file");
        done += (size_t)n;
    }
}

static void compare(const unsigned char *got, size_t length, long long offset, long seed, int zero)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char expected = zero ? 0 : content(offset + (long long)i, seed);
        if (got[i] != expected) {
            errno = 0;
            fail("byte %lld is %02x, expected %02x", offset + (long long)i, got[i], expected);
        }
    }
}

static unsigned char buffer[BLOCK];

/* write FILE OFFSET LENGTH SEED [MILLISECONDS]: pattern in blocks of 1 MiB with a pause after each, then fsync */
static void verb_write(char **a)
{
    long long offset = number(a[1]), end = offset + number(a[2]);
    long seed = (long)number(a[3]), pause = a[4] ? (long)number(a[4]) : 0;
    int file = open_file(a[0], O_WRONLY | O_CREAT);
    while (offset < end) {
        size_t n = end - offset < BLOCK ? (size_t)(end - offset) : BLOCK;
        fill(buffer, n, offset, seed);
        write_all(file, buffer, n, offset);
        offset += (long long)n;
        if (pause) {
            /* The server is to see the data while the file is being written, so do not leave it to the page cache. */
            MUST(sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE));
            usleep((useconds_t)pause * 1000);
        }
    }
    MUST(fsync(file));
    MUST(close(file));
}

/* check FILE OFFSET LENGTH SEED and zeros FILE OFFSET LENGTH: what is read there */
static void read_back(char **a, int zero)
{
    long long offset = number(a[1]), end = offset + number(a[2]);
    long seed = zero ? 0 : (long)number(a[3]);
    int file = open_file(a[0], O_RDONLY);
    while (offset < end) {
        size_t n = end - offset < BLOCK ? (size_t)(end - offset) : BLOCK;
        read_all(file, buffer, n, offset);
        compare(buffer, n, offset, seed, zero);
        offset += (long long)n;
    }
    MUST(close(file));
}
static void verb_check(char **a) { read_back(a, 0); }
static void verb_zeros(char **a) { read_back(a, 1); }

/* unlink-open DIR: a file that is unlinked while it is open stays usable through the descriptor, and then goes */
static void verb_unlink_open(char **a)
{
    MUST(chdir(a[0]));
    MUST(mkdir("u", 0755));
    int file = open_file("u/f", O_RDWR | O_CREAT | O_EXCL);
    write_all(file, "before", 6, 0);
    MUST(unlink("u/f"));
    struct stat st;
    MUST_FAIL(stat("u/f", &st), ENOENT);
    char text[16] = "";
    read_all(file, text, 6, 0);
    EXPECT(!memcmp(text, "before", 6));
    write_all(file, "after!", 6, 6);
    MUST(fsync(file));
    MUST(fchmod(file, 0600));
    MUST(ftruncate(file, 9));
    MUST(fstat(file, &st));
    EXPECT(st.st_size == 9 && (st.st_mode & 0777) == 0600);
    MUST(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
    read_all(file, text, 9, 0);
    EXPECT(!memcmp(text, "beforeaft", 9));
    MUST(close(file));
    MUST(rmdir("u")); /* fails when the client's stand-in name was left behind */
}

/* rename-open DIR: descriptors follow the file, not the name */
static void verb_rename_open(char **a)
{
    MUST(chdir(a[0]));
    int one = open_file("one", O_RDWR | O_CREAT | O_EXCL), two = open_file("two", O_RDWR | O_CREAT | O_EXCL);
    char text[8];
    struct stat st;
    write_all(one, "first", 5, 0);
    write_all(two, "other", 5, 0);
    MUST(fsync(one));
    MUST(fsync(two));
    MUST(rename("one", "two"));
    MUST_FAIL(stat("one", &st), ENOENT);
    MUST(stat("two", &st));
    ino_t number = st.st_ino;
    MUST(fstat(one, &st));
    EXPECT(st.st_ino == number);
    posix_fadvise(two, 0, 0, POSIX_FADV_DONTNEED);
    read_all(two, text, 5, 0);
    EXPECT(!memcmp(text, "other", 5));
    write_all(one, "FIRST", 5, 0);
    MUST(close(one));
    MUST(close(two));
    int file = open_file("two", O_RDONLY);
    read_all(file, text, 5, 0);
    EXPECT(!memcmp(text, "FIRST", 5));
    MUST(close(file));
    MUST(unlink("two"));
}

/* names DIR: errors of the operations on names */
static void verb_names(char **a)
{
    char longest[257];
    struct stat st;
    MUST(chdir(a[0]));
    memset(longest, 'n', sizeof longest);
    longest[256] = 0;
    MUST_FAIL(mkdir(longest, 0755), ENAMETOOLONG);
    longest[255] = 0;
    MUST(mkdir(longest, 0755));
    MUST(stat(longest, &st));
    MUST(rmdir(longest));
    MUST(mkdir("d", 0755));
    MUST(mkdir("d/sub", 0755));
    MUST(mkdir("empty", 0755));
    MUST(close(open_file("file", O_WRONLY | O_CREAT)));
    MUST_FAIL(mkdir("d", 0755), EEXIST);
    MUST_FAIL(rmdir("d"), ENOTEMPTY);
    MUST_FAIL(rmdir("file"), ENOTDIR);
    MUST_FAIL(rmdir("none"), ENOENT);
    MUST_FAIL(unlink("none"), ENOENT);
    MUST_FAIL(stat("file/x", &st), ENOTDIR);
    MUST_FAIL(rename("d", "d/sub/x"), EINVAL);
    MUST_FAIL(rename("none", "x"), ENOENT);
    MUST_FAIL(rename("file", "d"), EISDIR);
    MUST_FAIL(rename("d", "file"), ENOTDIR);
    EXPECT(rename("empty", "d") < 0);
    MUST(stat("d/sub", &st));
    MUST(rename("d", "empty"));
    MUST(stat("empty/sub", &st));
    MUST_FAIL(link("file", "empty"), EEXIST);
    MUST_FAIL(link("none", "x"), ENOENT);
    MUST_FAIL(open("file", O_WRONLY | O_CREAT | O_EXCL, 0644), EEXIST);
    MUST_FAIL(open("empty", O_WRONLY), EISDIR);
    MUST_FAIL(open("none", O_RDONLY), ENOENT);
    /* Names are bytes to a POSIX client as long as they are UTF-8. */
    static const char *odd[] = { " ", "a b", "-rf", "\xc3\xa4\xe6\xbc\xa2\xf0\x9f\x98\x80", "back\\slash", "new\nline", "*?[", "..." };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        MUST(close(open_file(odd[i], O_WRONLY | O_CREAT | O_EXCL)));
        MUST(stat(odd[i], &st));
        MUST(unlink(odd[i]));
    }
}

/* attributes FILE: modes, owners, times; each read back from the server by the second call, `attributes-are` */
static void verb_attributes(char **a)
{
    struct timespec times[2] = { { 1000000000, 123456789 }, { 2000000000, 987654321 } };
    struct stat before, after;
    MUST(close(open_file(a[0], O_WRONLY | O_CREAT | O_EXCL)));
    for (mode_t mode = 0; mode < 010000; mode += 0111) {
        MUST(chmod(a[0], mode));
        MUST(stat(a[0], &after));
        EXPECT((after.st_mode & 07777) == mode);
    }
    MUST(chown(a[0], 1234, 4321));
    MUST(stat(a[0], &before));
    EXPECT(before.st_uid == 1234 && before.st_gid == 4321);
    usleep(20000);
    MUST(chmod(a[0], 0640));
    MUST(stat(a[0], &after));
    EXPECT(after.st_ctim.tv_sec > before.st_ctim.tv_sec || (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec > before.st_ctim.tv_nsec));
    MUST(utimensat(AT_FDCWD, a[0], times, 0));
}
static void verb_attributes_are(char **a)
{
    struct stat st;
    struct timespec now;
    MUST(stat(a[0], &st));
    EXPECT((st.st_mode & 07777) == 0640 && st.st_uid == 1234 && st.st_gid == 4321 && st.st_nlink == 1 && st.st_size == 0);
    EXPECT(st.st_atim.tv_sec == 1000000000 && st.st_atim.tv_nsec == 123456789);
    EXPECT(st.st_mtim.tv_sec == 2000000000 && st.st_mtim.tv_nsec == 987654321);
    /* A time "now" is the server's. */
    MUST(utimensat(AT_FDCWD, a[0], NULL, 0));
    MUST(stat(a[0], &st));
    MUST(clock_gettime(CLOCK_REALTIME, &now));
    EXPECT(llabs((long long)st.st_mtim.tv_sec - now.tv_sec) < 60);
}

/* alike DIR DIR: all that the first tree has, the second has with the same mode, time of last change and size (of what is no
 * directory: file systems give those sizes of their own). Symbolic links are left out: busybox cp leaves their times alone. */
static const char *first_tree, *second_tree;
static long long seen_alike;
static int as_in_second(const char *path, const struct stat *expected, int type, struct FTW *position)
{
    (void)position;
    char other[4096];
    struct stat got;
    errno = 0;
    if (type == FTW_NS || type == FTW_DNR)
        fail("cannot be looked at: %s", path);
    if (type == FTW_SL)
        return 0;
    if (snprintf(other, sizeof other, "%s%s", second_tree, path + strlen(first_tree)) >= (int)sizeof other)
        fail("too long a name: %s", path);
    MUST(lstat(other, &got));
    if (got.st_mode != expected->st_mode || got.st_mtime != expected->st_mtime || (type == FTW_F && got.st_size != expected->st_size))
        fail("%s: mode %o, time %lld, size %lld; expected %o, %lld, %lld", other, got.st_mode, (long long)got.st_mtime,
             (long long)got.st_size, expected->st_mode, (long long)expected->st_mtime, (long long)expected->st_size);
    seen_alike++;
    return 0;
}
static void verb_alike(char **a)
{
    first_tree = a[0];
    second_tree = a[1];
    MUST(nftw(first_tree, as_in_second, 16, FTW_PHYS));
    EXPECT(seen_alike > 100); /* else there was no tree */
}

/* many DIR N: create; listed DIR N: every name once and no other; thin DIR N: remove each second while listing */
static void verb_many(char **a)
{
    long long n = number(a[1]);
    char name[32];
    MUST(mkdir(a[0], 0755));
    MUST(chdir(a[0]));
    for (long long i = 0; i < n; i++) {
        snprintf(name, sizeof name, "file-%lld", i);
        MUST(close(open_file(name, O_WRONLY | O_CREAT | O_EXCL)));
    }
}
static void listed(const char *path, long long n, long long step)
{
    char *seen = calloc((size_t)n, 1);
    DIR *directory = opendir(path);
    if (!directory || !seen)
        fail("opendir %s", path);
    long long count = 0;
    for (struct dirent *e; errno = 0, (e = readdir(directory));) {
        long long i;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (sscanf(e->d_name, "file-%lld", &i) != 1 || i < 0 || i >= n || i % step)
            fail("unexpected name %s", e->d_name);
        if (seen[i]++)
            fail("%s listed twice", e->d_name);
        if (e->d_type != DT_REG && e->d_type != DT_UNKNOWN)
            fail("%s has type %d", e->d_name, e->d_type);
        count++;
    }
    if (errno)
        fail("readdir after %lld entries", count);
    long long expected = (n + step - 1) / step;
    if (count != expected)
        fail("%lld entries listed, expected %lld", count, expected);
    closedir(directory);
    free(seen);
}
static void verb_listed(char **a) { listed(a[0], number(a[1]), 1); }
static void verb_thin(char **a)
{
    DIR *directory = opendir(a[0]);
    if (!directory)
        fail("opendir %s", a[0]);
    for (struct dirent *e; errno = 0, (e = readdir(directory));) {
        long long i;
        if (sscanf(e->d_name, "file-%lld", &i) == 1 && i % 2)
            MUST(unlinkat(dirfd(directory), e->d_name, 0));
    }
    if (errno)
        fail("readdir");
    closedir(directory);
    listed(a[0], number(a[1]), 2);
}

/* sizes FILE: truncate, extend, write beyond the end, append */
static void verb_sizes(char **a)
{
    struct stat st;
    int file = open_file(a[0], O_RDWR | O_CREAT | O_EXCL);
    fill(buffer, 100000, 0, 1);
    write_all(file, buffer, 100000, 0);
    MUST(ftruncate(file, 12345));
    MUST(ftruncate(file, 70000));
    MUST(fsync(file));
    MUST(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
    read_all(file, buffer, 70000, 0);
    compare(buffer, 12345, 0, 1, 0);
    compare(buffer + 12345, 70000 - 12345, 12345, 0, 1);
    write_all(file, "end", 3, 200000);
    MUST(fsync(file));
    MUST(fstat(file, &st));
    EXPECT(st.st_size == 200003);
    EXPECT(pread(file, buffer, 10, 200003) == 0);
    EXPECT(pread(file, buffer, 10, 200001) == 2);
    MUST(close(file));
    file = open_file(a[0], O_WRONLY | O_APPEND);
    EXPECT(write(file, "more", 4) == 4);
    MUST(close(file));
    file = open_file(a[0], O_RDONLY);
    read_all(file, buffer, 7, 200000);
    EXPECT(!memcmp(buffer, "endmore", 7));
    EXPECT(pread(file, buffer, 10, 200007) == 0);
    MUST(close(file));
    file = open_file(a[0], O_WRONLY | O_TRUNC);
    MUST(fstat(file, &st));
    EXPECT(st.st_size == 0);
    MUST(close(file));
    MUST(truncate(a[0], 3ll << 40));
    MUST(stat(a[0], &st));
    EXPECT(st.st_size == 3ll << 40);
}

/* mmap FILE: stores through a shared mapping reach the file */
static void verb_mmap(char **a)
{
    size_t length = 300000;
    int file = open_file(a[0], O_RDWR | O_CREAT | O_EXCL);
    MUST(ftruncate(file, (off_t)length));
    unsigned char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        fail("mmap");
    compare(map, length, 0, 0, 1);
    fill(map, length, 0, 5);
    MUST(msync(map, length, MS_SYNC));
    MUST(munmap(map, length));
    MUST(close(file));
}

/* claim DIR N: create names 0..N-1 exclusively; prints how many were won */
static void verb_claim(char **a)
{
    long long n = number(a[1]), won = 0;
    char name[32];
    MUST(chdir(a[0]));
    for (long long i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%lld", i);
        int file = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (file >= 0) {
            won++;
            MUST(close(file));
        } else if (errno != EEXIST) {
            fail("exclusive create of %s", name);
        }
    }
    printf("%lld\n", won);
}

/* xattr FILE: extended attributes of the user namespace (RFC 8276) */
static void verb_xattr(char **a)
{
    static char value[50000], got[65536];
    memset(value, 'v', sizeof value);
    MUST(setxattr(a[0], "user.first", "one", 3, XATTR_CREATE));
    MUST_FAIL(setxattr(a[0], "user.first", "two", 3, XATTR_CREATE), EEXIST);
    MUST_FAIL(setxattr(a[0], "user.second", "two", 3, XATTR_REPLACE), ENODATA);
    MUST(setxattr(a[0], "user.first", "three", 5, XATTR_REPLACE));
    EXPECT(getxattr(a[0], "user.first", got, sizeof got) == 5 && !memcmp(got, "three", 5));
    EXPECT(getxattr(a[0], "user.first", NULL, 0) == 5);
    MUST_FAIL(getxattr(a[0], "user.first", got, 2), ERANGE);
    MUST(setxattr(a[0], "user.empty", "", 0, 0));
    EXPECT(getxattr(a[0], "user.empty", got, sizeof got) == 0);
    MUST(setxattr(a[0], "user.large", value, sizeof value, 0));
    EXPECT(getxattr(a[0], "user.large", got, sizeof got) == sizeof value && !memcmp(got, value, sizeof value));
    MUST_FAIL(getxattr(a[0], "user.none", got, sizeof got), ENODATA);
    ssize_t length = listxattr(a[0], got, sizeof got);
    MUST(length);
    int found = 0, others = 0;
    for (char *name = got; name < got + length; name += strlen(name) + 1)
        if (!strncmp(name, "user.", 5))
            !strcmp(name, "user.first") || !strcmp(name, "user.empty") || !strcmp(name, "user.large") ? found++ : others++;
    EXPECT(found == 3 && others == 0);
    MUST(removexattr(a[0], "user.first"));
    MUST_FAIL(removexattr(a[0], "user.first"), ENODATA);
    MUST_FAIL(getxattr(a[0], "user.first", got, sizeof got), ENODATA);
}
/* xattr-is FILE NAME VALUE: as another client or a new mount sees it */
static void verb_xattr_is(char **a)
{
    char got[256];
    ssize_t length = getxattr(a[0], a[1], got, sizeof got);
    MUST(length);
    EXPECT((size_t)length == strlen(a[2]) && !memcmp(got, a[2], (size_t)length));
}
static void verb_xattr_set(char **a) { MUST(setxattr(a[0], a[1], a[2], strlen(a[2]), 0)); }

/* allocate, punch, seek, copy, clone: the NFSv4.2 operations on a file's space, FILE (and FILE.2) */
static void verb_allocate(char **a)
{
    struct stat st;
    int file = open_file(a[0], O_RDWR | O_CREAT | O_EXCL);
    MUST(fallocate(file, 0, 0, 1 << 20));
    MUST(fstat(file, &st));
    EXPECT(st.st_size == 1 << 20);
    read_all(file, buffer, 1 << 20, 0);
    compare(buffer, 1 << 20, 0, 0, 1);
    fill(buffer, 1 << 20, 0, 2);
    write_all(file, buffer, 1 << 20, 0);
    MUST(fallocate(file, 0, 0, 1 << 20)); /* must not change what is there */
    MUST(fsync(file));
    MUST(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
    read_all(file, buffer, 1 << 20, 0);
    compare(buffer, 1 << 20, 0, 2, 0);
    MUST(close(file));
}
static void verb_punch(char **a)
{
    struct stat st;
    int file = open_file(a[0], O_RDWR | O_CREAT | O_EXCL);
    fill(buffer, BLOCK, 0, 3);
    write_all(file, buffer, BLOCK, 0);
    MUST(fsync(file));
    MUST(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100001, 500000));
    MUST(fstat(file, &st));
    EXPECT(st.st_size == BLOCK);
    MUST(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
    read_all(file, buffer, BLOCK, 0);
    compare(buffer, 100001, 0, 3, 0);
    compare(buffer + 100001, 500000, 100001, 0, 1);
    compare(buffer + 600001, BLOCK - 600001, 600001, 3, 0);
    MUST(close(file));
}
static void verb_seek(char **a)
{
    int file = open_file(a[0], O_RDWR | O_CREAT | O_EXCL);
    fill(buffer, BLOCK, 0, 4);
    write_all(file, buffer, BLOCK, 0);
    write_all(file, buffer, BLOCK, 8ll << 20);
    MUST(ftruncate(file, 16ll << 20));
    MUST(fsync(file));
    EXPECT(lseek(file, 0, SEEK_DATA) == 0);
    EXPECT(lseek(file, 0, SEEK_HOLE) == BLOCK);
    EXPECT(lseek(file, 2 << 20, SEEK_HOLE) == 2 << 20);
    EXPECT(lseek(file, 2 << 20, SEEK_DATA) == 8ll << 20);
    EXPECT(lseek(file, 8ll << 20, SEEK_HOLE) == 9ll << 20);
    MUST_FAIL(lseek(file, 9ll << 20, SEEK_DATA), ENXIO);
    MUST_FAIL(lseek(file, 16ll << 20, SEEK_HOLE), ENXIO);
    MUST_FAIL(lseek(file, 16ll << 20, SEEK_DATA), ENXIO);
    MUST(close(file));
}
static void second_name(char *name, size_t size, const char *first)
{
    snprintf(name, size, "%s.2", first);
}
static void verb_copy(char **a)
{
    char name[4096];
    second_name(name, sizeof name, a[0]);
    int from = open_file(a[0], O_RDWR | O_CREAT | O_EXCL), to = open_file(name, O_RDWR | O_CREAT | O_EXCL);
    for (int i = 0; i < 4; i++) {
        fill(buffer, BLOCK, i * BLOCK, 6);
        write_all(from, buffer, BLOCK, i * BLOCK);
    }
    off64_t in = 1000, out = 0;
    size_t left = 3 * BLOCK;
    while (left) {
        ssize_t n = copy_file_range(from, &in, to, &out, left, 0);
        MUST(n);
        EXPECT(n > 0);
        left -= (size_t)n;
    }
    MUST(fsync(to));
    MUST(posix_fadvise(to, 0, 0, POSIX_FADV_DONTNEED));
    for (int i = 0; i < 3; i++) {
        read_all(to, buffer, BLOCK, i * BLOCK);
        compare(buffer, BLOCK, i * BLOCK + 1000, 6, 0);
    }
    EXPECT(pread(to, buffer, 1, 3 * BLOCK) == 0);
    MUST(close(from));
    MUST(close(to));
}
static void verb_clone(char **a)
{
    char name[4096];
    second_name(name, sizeof name, a[0]);
    int from = open_file(a[0], O_RDWR | O_CREAT | O_EXCL), to = open_file(name, O_RDWR | O_CREAT | O_EXCL);
    for (int i = 0; i < 2; i++) {
        fill(buffer, BLOCK, i * BLOCK, 7);
        write_all(from, buffer, BLOCK, i * BLOCK);
    }
    MUST(ioctl(to, FICLONE, from));
    read_all(to, buffer, BLOCK, BLOCK);
    compare(buffer, BLOCK, BLOCK, 7, 0);
    /* The two part company at the first write. */
    fill(buffer, 4096, 0, 8);
    write_all(from, buffer, 4096, 0);
    MUST(fsync(from));
    MUST(posix_fadvise(to, 0, 0, POSIX_FADV_DONTNEED));
    read_all(to, buffer, BLOCK, 0);
    compare(buffer, BLOCK, 0, 7, 0);
    struct file_clone_range range = { .src_fd = from, .src_offset = BLOCK, .src_length = 65536, .dest_offset = 4 * BLOCK };
    MUST(ioctl(to, FICLONERANGE, &range));
    read_all(to, buffer, 65536, 4 * BLOCK);
    compare(buffer, 65536, BLOCK, 7, 0);
    read_all(to, buffer, BLOCK, 3 * BLOCK);
    compare(buffer, BLOCK, 0, 0, 1);
    MUST(close(from));
    MUST(close(to));
}

static int lock(int file, int command, int type, long long start, long long length, struct flock *result)
{
    struct flock request = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
    int status = fcntl(file, command, &request);
    if (result)
        *result = request;
    return status;
}

static void hold(void)
{
    fflush(stdout);
    pause();
}

/* lock FILE r|w START LENGTH wait|try: prints `locked MILLISECONDS` or `conflict`, holds until it is killed */
static void verb_lock(char **a)
{
    struct timespec from, to;
    int file = open_file(a[0], O_RDWR | O_CREAT), wait = !strcmp(a[4], "wait");
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (lock(file, wait ? F_SETLKW : F_SETLK, *a[1] == 'r' ? F_RDLCK : F_WRLCK, number(a[2]), number(a[3]), NULL) < 0) {
        if (!wait && (errno == EAGAIN || errno == EACCES)) {
            puts("conflict");
            return;
        }
        fail("lock");
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("locked %lld\n", (to.tv_sec - from.tv_sec) * 1000ll + (to.tv_nsec - from.tv_nsec) / 1000000);
    hold();
}
/* holder FILE r|w START LENGTH: prints what F_GETLK says is in the way: `none`, or `r|w START LENGTH` */
static void verb_holder(char **a)
{
    struct flock l;
    int file = open_file(a[0], O_RDWR);
    MUST(lock(file, F_GETLK, *a[1] == 'r' ? F_RDLCK : F_WRLCK, number(a[2]), number(a[3]), &l));
    if (l.l_type == F_UNLCK)
        puts("none");
    else
        printf("%c %lld %lld\n", l.l_type == F_RDLCK ? 'r' : 'w', (long long)l.l_start, (long long)l.l_len);
}
/* split FILE: locks 0-99, gives back 40-59, makes 0-9 shared; holds until it is killed */
static void verb_split(char **a)
{
    int file = open_file(a[0], O_RDWR | O_CREAT);
    MUST(lock(file, F_SETLK, F_WRLCK, 0, 100, NULL));
    MUST(lock(file, F_SETLK, F_UNLCK, 40, 20, NULL));
    MUST(lock(file, F_SETLK, F_RDLCK, 0, 10, NULL));
    puts("locked");
    hold();
}
/* flock FILE: whole-file lock of the BSD kind; `locked` and hold, or `conflict` */
static void verb_flock(char **a)
{
    int file = open_file(a[0], O_RDWR | O_CREAT);
    if (flock(file, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            fail("flock");
        puts("conflict");
        return;
    }
    puts("locked");
    hold();
}
/* count FILE N: N times lock, read a number, write it plus one, unlock; lost updates show in the sum */
static void verb_count(char **a)
{
    int file = open_file(a[0], O_RDWR | O_CREAT);
    for (long long i = number(a[1]); i > 0; i--) {
        long long value = 0;
        while (lock(file, F_SETLK, F_WRLCK, 0, 0, NULL) < 0) {
            if (errno != EAGAIN && errno != EACCES)
                fail("lock");
            usleep(2000);
        }
        errno = 0;
        if (pread(file, &value, sizeof value, 0) < 0)
            fail("read");
        value++;
        write_all(file, &value, sizeof value, 0);
        MUST(lock(file, F_SETLK, F_UNLCK, 0, 0, NULL));
        usleep(500); /* leave the other a chance */
    }
    MUST(close(file));
}
/* counted FILE N: the sum must be N */
static void verb_counted(char **a)
{
    long long value = 0;
    int file = open_file(a[0], O_RDONLY);
    read_all(file, &value, sizeof value, 0);
    errno = 0;
    if (value != number(a[1]))
        fail("the count is %lld, expected %s", value, a[1]);
}

/* reopen FILE N: open, read all, close, N times; prints the first byte as last read */
static void verb_reopen(char **a)
{
    for (long long i = number(a[1]); i > 0; i--) {
        int file = open_file(a[0], O_RDONLY);
        errno = 0;
        if (read(file, buffer, BLOCK) < 1)
            fail("read");
        MUST(close(file));
    }
    printf("%c\n", buffer[0]);
}
/* put FILE TEXT: open for writing without truncation, write, close; prints the milliseconds it took */
static void verb_put(char **a)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    int file = open_file(a[0], O_WRONLY | O_CREAT);
    write_all(file, a[1], strlen(a[1]), 0);
    MUST(close(file));
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000ll + (to.tv_nsec - from.tv_nsec) / 1000000);
}

/* as UID GID COMMAND...: with these ids and no other group */
static void verb_as(char **a)
{
    MUST(setgroups(0, NULL));
    MUST(setgid((gid_t)number(a[1])));
    MUST(setuid((uid_t)number(a[0])));
    execvp(a[2], a + 2);
    fail("exec %s", a[2]);
}

/* denied FILE r|w: opening must fail with EACCES */
static void verb_denied(char **a)
{
    MUST_FAIL(open(a[0], *a[1] == 'r' ? O_RDONLY : O_WRONLY), EACCES);
}

/* model DIR REFERENCE SEED STEPS: the same random operations in both directories must have the same outcome.
 * REFERENCE is a local file system of the same kernel, so every difference comes from the server. */
static uint64_t random_state;
static unsigned pick(unsigned n)
{
    random_state += 0x9e3779b97f4a7c15u;
    return (unsigned)(mix(random_state) % n);
}
static int by_name(const struct dirent **x, const struct dirent **y) { return strcmp((*x)->d_name, (*y)->d_name); }
static int visible(const struct dirent *e) { return strcmp(e->d_name, ".") && strcmp(e->d_name, ".."); }
static uint64_t digest(uint64_t h, const void *data, size_t length)
{
    for (size_t i = 0; i < length; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return h;
}
struct step { unsigned kind, x, y, length, offset; };
struct outcome { int error; uint64_t value; char detail[128]; };
static struct outcome perform(int directory, const struct step *s)
{
    static char text[1 << 17], target[256];
    char from[32], to[32];
    struct outcome o = { 0, 0, "" };
    struct stat st;
    long long status = 0;
    int file = -1;
    snprintf(from, sizeof from, s->x % 3 ? "n%u" : "d%u/n%u", s->x % 7, s->x % 11);
    snprintf(to, sizeof to, s->y % 3 ? "n%u" : "d%u/n%u", s->y % 7, s->y % 11);
    if (s->kind % 16 >= 12)
        snprintf(from, sizeof from, "d%u", s->x % 7);
    errno = 0;
    switch (s->kind % 16) {
    case 0: status = file = openat(directory, from, O_WRONLY | O_CREAT | O_EXCL, 0644); break;
    case 1: case 2:
        if ((status = file = openat(directory, from, O_WRONLY | O_CREAT, 0644)) < 0)
            break;
        fill((unsigned char *)text, s->length, s->offset, s->y);
        write_all(file, text, s->length, s->offset);
        break;
    case 3: case 4:
        if ((status = file = openat(directory, from, O_RDONLY)) < 0)
            break;
        if ((status = pread(file, text, s->length, s->offset)) >= 0)
            o.value = digest((uint64_t)status, text, (size_t)status);
        break;
    case 5:
        if ((status = file = openat(directory, from, O_WRONLY)) >= 0)
            status = ftruncate(file, s->offset);
        break;
    case 6: status = unlinkat(directory, from, 0); break;
    case 7: status = renameat(directory, from, directory, to); break;
    case 8: status = linkat(directory, from, directory, to, 0); break;
    case 9: status = symlinkat(to, directory, from); break;
    case 10: status = fchmodat(directory, from, 0400 | s->length % 0200, 0); break;
    case 11:
        if ((status = fstatat(directory, from, &st, AT_SYMLINK_NOFOLLOW)) == 0 && !S_ISDIR(st.st_mode)) {
            o.value = st.st_mode * 31u + st.st_nlink + (uint64_t)st.st_size * 997u;
            snprintf(o.detail, sizeof o.detail, "%s: mode %o, %lu links, %lld bytes", from, st.st_mode, (unsigned long)st.st_nlink, (long long)st.st_size);
            if (S_ISLNK(st.st_mode) && (status = readlinkat(directory, from, target, sizeof target)) > 0)
                o.value = digest(o.value, target, (size_t)status);
        }
        break;
    case 12: status = mkdirat(directory, from, 0755); break;
    case 13: status = unlinkat(directory, from, AT_REMOVEDIR); break;
    case 14: snprintf(to, sizeof to, "d%u", s->y % 7); status = renameat(directory, from, directory, to); break;
    case 15: {
        struct dirent **list;
        int n = scandirat(directory, s->x % 2 ? from : ".", &list, visible, by_name);
        status = n;
        o.value = (uint64_t)n;
        for (int i = 0; i < n; i++) {
            o.value = digest(o.value, list[i]->d_name, strlen(list[i]->d_name));
            free(list[i]);
        }
        if (n >= 0)
            free(list);
        break;
    }
    }
    if (status < 0)
        o.error = errno;
    if (file >= 0)
        MUST(close(file));
    return o;
}
static void verb_model(char **a)
{
    int tested = open_file(a[0], O_RDONLY | O_DIRECTORY), reference = open_file(a[1], O_RDONLY | O_DIRECTORY);
    unsigned done = 0;
    random_state = (uint64_t)number(a[2]);
    for (long long i = 0, n = number(a[3]); i < n; i++) {
        struct step s = { pick(16), pick(1000), pick(1000), pick(1 << 16), pick(1 << 17) };
        struct outcome expected = perform(reference, &s), got = perform(tested, &s);
        /* Both of these say "not empty" (POSIX, rmdir and rename). */
        if (got.error == EEXIST && expected.error == ENOTEMPTY)
            got.error = ENOTEMPTY;
        if (got.error == ENOTEMPTY && expected.error == EEXIST)
            got.error = EEXIST;
        errno = 0;
        if (got.error != expected.error)
            fail("step %lld, operation %u (%u, %u): %s, expected %s", i, s.kind, s.x, s.y, got.error ? strerror(got.error) : "success",
                 expected.error ? strerror(expected.error) : "success");
        if (got.value != expected.value)
            fail("step %lld, operation %u (%u, %u): outcome %llx %s, expected %llx %s", i, s.kind, s.x, s.y, (unsigned long long)got.value, got.detail,
                 (unsigned long long)expected.value, expected.detail);
        done += !got.error;
        if (i % 1000 == 999)
            posix_fadvise(tested, 0, 0, POSIX_FADV_DONTNEED);
    }
    EXPECT(done > 100); /* else the steps met nothing but errors */
}

static const struct { const char *name; void (*run)(char **); int arguments; } verbs[] = {
    { "write", verb_write, 4 }, { "check", verb_check, 4 }, { "zeros", verb_zeros, 3 }, { "unlink-open", verb_unlink_open, 1 },
    { "rename-open", verb_rename_open, 1 }, { "names", verb_names, 1 }, { "attributes", verb_attributes, 1 },
    { "attributes-are", verb_attributes_are, 1 }, { "alike", verb_alike, 2 }, { "many", verb_many, 2 }, { "listed", verb_listed, 2 }, { "thin", verb_thin, 2 },
    { "sizes", verb_sizes, 1 }, { "mmap", verb_mmap, 1 }, { "claim", verb_claim, 2 }, { "xattr", verb_xattr, 1 },
    { "xattr-set", verb_xattr_set, 3 }, { "xattr-is", verb_xattr_is, 3 }, { "allocate", verb_allocate, 1 }, { "punch", verb_punch, 1 },
    { "seek", verb_seek, 1 }, { "copy", verb_copy, 1 }, { "clone", verb_clone, 1 }, { "lock", verb_lock, 5 }, { "holder", verb_holder, 4 },
    { "split", verb_split, 1 }, { "flock", verb_flock, 1 }, { "count", verb_count, 2 }, { "counted", verb_counted, 2 },
    { "reopen", verb_reopen, 2 }, { "put", verb_put, 2 }, { "as", verb_as, 3 }, { "denied", verb_denied, 2 }, { "model", verb_model, 4 },
};

int main(int count, char **arguments)
{
    for (size_t i = 0; count > 1 && i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(arguments[1], verbs[i].name)) {
            if (count - 2 < verbs[i].arguments) {
                fprintf(stderr, "%s: %d arguments needed\n", verbs[i].name, verbs[i].arguments);
                return 2;
            }
            verbs[i].run(arguments + 2);
            return 0;
        }
    fprintf(stderr, "usage: helper VERB ARGUMENTS; the verbs are described in helper.c\n");
    return 2;
}
