/* A load client on Debian's libnfs, in its asynchronous form: one thread, poll, so many calls outstanding.
 *
 *     libnfs HOST PORT VERSION OPERATION SIZE OUTSTANDING CONNECTIONS SECONDS
 *
 * The export is /export; read and getattr use its file `data`, write one of its own, create makes files in a directory of its
 * own. After a warm-up of a tenth of the time, and of as many calls as are outstanding, it counts, at least ten calls
 * of each task; then it prints calls completed, seconds, and CPU seconds (user and system). Needs libnfs 4 or later. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <nfsc/libnfs.h>

#define DATA_SIZE (256ull << 20)

enum operation { READ, WRITE, GETATTR, CREATE };

struct connection {
	struct nfs_context *nfs;
	struct nfsfh *file;
};

struct task {
	struct connection *connection;
	uint64_t offset;
	char *buffer;
};

static enum operation operation;
static uint64_t size, step, completed, names;
static int version;
static char directory[64];

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "libnfs: %s: %s\n", what, why);
	exit(1);
}

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void submit(struct task *task);

static void done(int status, struct nfs_context *nfs, void *data, void *private)
{
	struct task *task = private;

	(void)data;
	if (status < 0)
		fail("a call failed", nfs_get_error(nfs));
	if (operation <= WRITE && (uint64_t)status != size)
		fail("a call", "moved fewer bytes than asked for");
	completed++;
	submit(task);
}

static void created(int status, struct nfs_context *nfs, void *data, void *private)
{
	if (status < 0)
		fail("create", nfs_get_error(nfs));
	if (nfs_close_async(nfs, data, done, private) < 0)
		fail("close", nfs_get_error(nfs));
}

static void submit(struct task *task)
{
	struct nfs_context *nfs = task->connection->nfs;
	struct nfsfh *file = task->connection->file;
	char name[128];
	int status;

	switch (operation) {
	case READ:
		status = nfs_pread_async(nfs, file, task->offset, size, done, task);
		break;
	case WRITE:
		status = nfs_pwrite_async(nfs, file, task->offset, size, task->buffer, done, task);
		break;
	case GETATTR:
		status = nfs_fstat64_async(nfs, file, done, task);
		break;
	case CREATE:
		snprintf(name, sizeof name, "%s/%llu", directory, (unsigned long long)names++);
		/* With version 4, nfs_creat of libnfs 4.0 opens for reading. */
		if (version == 4)
			status = nfs_open2_async(nfs, name, O_CREAT | O_WRONLY, 0644, created, task);
		else
			status = nfs_creat_async(nfs, name, 0644, created, task);
		break;
	default:
		abort();
	}
	if (status < 0)
		fail("submit", nfs_get_error(nfs));
	if (size)
		task->offset = (task->offset + step) % (DATA_SIZE - size + 1) / size * size;
}

static void connect_one(struct connection *connection, const char *host, const char *port, int number)
{
	char url[256], path[128];
	struct nfs_context *nfs = nfs_init_context();
	struct nfs_url *parsed;
	int status;

	if (!nfs)
		fail("context", "no memory");
	snprintf(url, sizeof url, "nfs://%s/export?version=%d&nfsport=%s&mountport=%s", host, version, port, port);
	parsed = nfs_parse_url_dir(nfs, url);
	if (!parsed)
		fail(url, nfs_get_error(nfs));
	if (nfs_mount(nfs, parsed->server, parsed->path) < 0)
		fail(url, nfs_get_error(nfs));
	nfs_destroy_url(parsed);
	connection->nfs = nfs;
	if (operation == CREATE)
		return;
	snprintf(path, sizeof path, "/data");
	if (operation == WRITE)
		snprintf(path, sizeof path, "/written-%d-%d", (int)getpid(), number);
	status = operation == WRITE ? nfs_open2(nfs, path, O_CREAT | O_WRONLY, 0644, &connection->file)
				    : nfs_open(nfs, path, O_RDONLY, &connection->file);
	if (status < 0)
		fail(path, nfs_get_error(nfs));
}

int main(int argc, char **argv)
{
	static const char *const names_of[] = { "read", "write", "getattr", "create" };
	int outstanding, connections, counting = 0;
	double seconds, begun, started = 0, cpu = 0;
	uint64_t before = 0;
	struct connection *all;
	struct pollfd *polled;
	struct task *tasks;

	if (argc != 9)
		fail("usage", "libnfs HOST PORT VERSION OPERATION SIZE OUTSTANDING CONNECTIONS SECONDS");
	version = argv[3][0] == '3' ? 3 : 4;
	while (operation <= CREATE && strcmp(names_of[operation], argv[4]))
		operation++;
	if (operation > CREATE)
		fail(argv[4], "no such operation");
	size = strtoull(argv[5], NULL, 10);
	outstanding = atoi(argv[6]);
	connections = atoi(argv[7]);
	seconds = atof(argv[8]);
	/* Tasks go through the file side by side. */
	step = size * (uint64_t)outstanding;

	all = calloc((size_t)connections, sizeof *all);
	polled = calloc((size_t)connections, sizeof *polled);
	tasks = calloc((size_t)outstanding, sizeof *tasks);
	if (!all || !polled || !tasks)
		fail("start", "no memory");
	for (int i = 0; i < connections; i++)
		connect_one(&all[i], argv[1], argv[2], i);
	if (operation == CREATE) {
		snprintf(directory, sizeof directory, "/made-%d", (int)getpid());
		if (nfs_mkdir(all[0].nfs, directory) < 0)
			fail(directory, nfs_get_error(all[0].nfs));
	}
	for (int i = 0; i < outstanding; i++) {
		tasks[i].connection = &all[i % connections];
		tasks[i].offset = size ? (uint64_t)i * size % (DATA_SIZE - size + 1) / size * size : 0;
		tasks[i].buffer = operation == WRITE ? calloc(1, size) : NULL;
		submit(&tasks[i]);
	}
	begun = now(CLOCK_MONOTONIC);
	for (;;) {
		double time = now(CLOCK_MONOTONIC);

		if (!counting && time - begun >= seconds / 10 && completed >= (uint64_t)outstanding) {
			counting = 1;
			before = completed;
			started = time;
			cpu = now(CLOCK_PROCESS_CPUTIME_ID);
		} else if (counting && time - started >= seconds && completed - before >= 10 * (uint64_t)outstanding) {
			printf("%llu %.9f %.9f\n", (unsigned long long)(completed - before), time - started,
			       now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
			fflush(stdout);
			/* Calls are outstanding; the server sees the connections close. */
			_exit(0);
		}
		for (int i = 0; i < connections; i++) {
			polled[i].fd = nfs_get_fd(all[i].nfs);
			polled[i].events = (short)nfs_which_events(all[i].nfs);
		}
		if (poll(polled, (nfds_t)connections, 100) < 0 && errno != EINTR)
			fail("poll", strerror(errno));
		for (int i = 0; i < connections; i++)
			if (polled[i].revents && nfs_service(all[i].nfs, polled[i].revents) < 0)
				fail("service", nfs_get_error(all[i].nfs));
	}
}
