// Preloaded into a process, moves its wall clock by the nanoseconds in the file that MOVE_TIME_FILE names. The
// monotonic clock stays what it is.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t* ahead;

__attribute__((constructor)) static void begin(void) {
  const char* name = getenv("MOVE_TIME_FILE");
  const int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void* mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) ahead = mapped;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int failed = (int)syscall(SYS_clock_gettime, clock, time);
  if (failed || !ahead || clock != CLOCK_REALTIME) return failed;
  const int64_t kSecond = 1000000000;
  const int64_t now = time->tv_sec * kSecond + time->tv_nsec + *ahead;
  time->tv_sec = now / kSecond;
  time->tv_nsec = now % kSecond;
  return 0;
}
