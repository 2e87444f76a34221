/* A disk that fails when it is told to: stands before libc in a server (LD_PRELOAD). The file that FAILING_DISK names holds lines
 * `write 5`, `sync 5`, `open 24`, `rename 5`: what fails from now on, and with which errno. Without the file nothing fails. Only
 * the log's files and snapshots are concerned, so that the server's own log goes on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* By system calls alone: what is wrapped must not be called from here. */
static int failure_of(const char *operation) {
    char text[256];
    const char *path = getenv("FAILING_DISK");
    if (!path) return 0;
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    ssize_t length = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    if (length <= 0) return 0;
    text[length] = 0;
    char *found = strstr(text, operation);
    return found ? atoi(found + strlen(operation)) : 0;
}

static int is_data(const char *path) { return strstr(path, "appendonlydir") || strstr(path, ".rdb"); }

static int fails(const char *operation, int fd) {
    char link[64], path[4096];
    int kept = errno, failure = failure_of(operation);
    if (failure) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = syscall(SYS_readlink, link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        if (!is_data(path)) failure = 0;
    }
    errno = failure ? failure : kept;
    return failure;
}

static int fails_at(const char *operation, const char *path) {
    int kept = errno, failure = is_data(path) ? failure_of(operation) : 0;
    errno = failure ? failure : kept;
    return failure;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t count) { return fails("write ", fd) ? -1 : NEXT(write)(fd, bytes, count); }
ssize_t writev(int fd, const struct iovec *pieces, int count) { return fails("write ", fd) ? -1 : NEXT(writev)(fd, pieces, count); }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return fails("write ", fd) ? -1 : NEXT(pwrite)(fd, bytes, count, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) { return fails("write ", fd) ? -1 : NEXT(pwrite64)(fd, bytes, count, at); }
int fsync(int fd) { return fails("sync ", fd) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return fails("sync ", fd) ? -1 : NEXT(fdatasync)(fd); }
int rename(const char *from, const char *to) { return fails_at("rename ", to) ? -1 : NEXT(rename)(from, to); }

/* Opening to read goes on: a disk without descriptors or rights to write. */
#define OPEN(name, before, pass)                                                                      \
    int name before {                                                                                 \
        mode_t mode = 0;                                                                              \
        if (flags & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, int); va_end(rest); } \
        if ((flags & O_ACCMODE) != O_RDONLY && fails_at("open ", path)) return -1;                    \
        return NEXT(name) pass;                                                                       \
    }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
