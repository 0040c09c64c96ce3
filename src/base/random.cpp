#include "base/random.h"

#include <sys/random.h>
#include <cerrno>
#include <system_error>

namespace tabella {

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t at = 0; at < count;) {
    const auto got = getrandom(bytes.data() + at, count - at, 0);
    if (got > 0)
      at += static_cast<size_t>(got);
    else if (errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "the system gives no random bytes");
  }
  return bytes;
}

}  // namespace tabella
