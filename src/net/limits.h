// What strangers may make the process take, all its servers together: connections, and memory for requests
// and answers.
#pragma once

#include <atomic>
#include <cstddef>

namespace tabella::net {

// Thread-safe. Must outlive the servers.
class Limits {
 public:
  Limits(size_t connections, size_t memory) : max_connections(connections), memory(memory) {}

  bool connections_are_full() const { return connections >= max_connections; }
  // Those who hold memory without use should let it go.
  bool memory_is_short() const { return memory_used > memory / 2; }

  const size_t max_connections;
  const size_t memory;
  std::atomic<size_t> connections = 0;
  std::atomic<size_t> memory_used = 0;
};

}  // namespace tabella::net
