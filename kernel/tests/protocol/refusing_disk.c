// A disk that is full or read-only, for machines where tests may not mount one: preloaded into the kernel and everything
// it starts. Below the folder XLAZY_TEST_DISK every call that would take room fails, while the file of that name with
// ".errno" exists, with the number that stands in it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int refuses(const char *path) {
    const char *disk = getenv("XLAZY_TEST_DISK");
    if (!disk || !path || strncmp(path, disk, strlen(disk)) != 0) return 0;
    char file[4096];
    snprintf(file, sizeof file, "%s.errno", disk);
    int (*real_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    int fd = real_open(file, O_RDONLY);
    if (fd < 0) return 0;
    char text[16] = {0};
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? atoi(text) : 0;
}

static int refuses_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return refuses(path);
}

#define REFUSE(code) do { int refused = (code); if (refused) { errno = refused; return -1; } } while (0)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list list; va_start(list, flags); int mode = va_arg(list, int); va_end(list); \
        if (flags & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)) REFUSE(refuses(path)); \
        return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list list; va_start(list, flags); int mode = va_arg(list, int); va_end(list); \
        if (flags & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)) REFUSE(refuses(path)); \
        return ((int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, #name))(at, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
    REFUSE(refuses_fd(fd));
    return REAL(write)(fd, data, size);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REFUSE(refuses_fd(fd));
    return REAL(writev)(fd, parts, count);
}
int mkdir(const char *path, mode_t mode) {
    REFUSE(refuses(path));
    return REAL(mkdir)(path, mode);
}
int link(const char *from, const char *to) {
    REFUSE(refuses(to));
    return REAL(link)(from, to);
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
    REFUSE(refuses(to));
    return REAL(linkat)(a, from, b, to, flags);
}
int symlink(const char *from, const char *to) {
    REFUSE(refuses(to));
    return REAL(symlink)(from, to);
}
int ftruncate64(int fd, off64_t size) {
    REFUSE(refuses_fd(fd));
    return REAL(ftruncate64)(fd, size);
}
int posix_fallocate(int fd, off_t at, off_t size) {
    int refused = refuses_fd(fd);
    return refused ? refused : REAL(posix_fallocate)(fd, at, size);
}
