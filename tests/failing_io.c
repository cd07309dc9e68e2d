/* The n-th write, fsync or rename fails, as in SQLite's own tests: loaded before the C library.

   `fail_at(kind, n, error, lasting)` counts from now on, in files below FAILING_FOLDER alone;
   `has_failed()` tells whether the n-th was reached, and ends it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, RENAME = 4 };
static int wanted_kind, error_number, is_lasting, failures;
static long left;

void fail_at(int kind, long n, int error, int lasting)
{
    left = n;
    error_number = error;
    is_lasting = lasting;
    failures = 0;
    wanted_kind = kind;
}

int has_failed(void)
{
    wanted_kind = 0;
    return failures;
}

static int fails(int kind, const char *path)
{
    const char *folder = getenv("FAILING_FOLDER");
    if (!(wanted_kind & kind) || !folder || strncmp(path, folder, strlen(folder)))
        return 0;
    left--;
    if (left > 0 || (left < 0 && !is_lasting))
        return 0;
    failures++;
    errno = error_number;
    return 1;
}

static int fails_of(int kind, int file)
{
    char link[64], path[4096];
    if (!(wanted_kind & kind))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    return fails(kind, path);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t size)
{
    REAL(write);
    return fails_of(WRITE, file) ? -1 : real(file, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    REAL(pwrite);
    return fails_of(WRITE, file) ? -1 : real(file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    REAL(pwrite64);
    return fails_of(WRITE, file) ? -1 : real(file, data, size, at);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    REAL(writev);
    return fails_of(WRITE, file) ? -1 : real(file, parts, count);
}

int ftruncate(int file, off_t size)
{
    REAL(ftruncate);
    return fails_of(WRITE, file) ? -1 : real(file, size);
}

int ftruncate64(int file, off64_t size)
{
    REAL(ftruncate64);
    return fails_of(WRITE, file) ? -1 : real(file, size);
}

int fsync(int file)
{
    REAL(fsync);
    return fails_of(SYNC, file) ? -1 : real(file);
}

int fdatasync(int file)
{
    REAL(fdatasync);
    return fails_of(SYNC, file) ? -1 : real(file);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    return fails(RENAME, from) ? -1 : real(from, to);
}
