// What changes, for those who watch: emails as they reach states, and the counts. While somebody does, the
// backend is asked a few times a second, once for all of them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/streams.h"
#include "outbox/backend.h"

namespace tabella::outbox {

// Thread-safe.
class Live {
 public:
  explicit Live(Backend& backend) : backend_(backend) {}

  // Sends events until the stream ends: "counts" at first and whenever they have changed, "email" for each
  // email that reaches a state. `last` is where a client was that comes back; if that is too long ago it is
  // told "reset": what it shows may be out of date.
  boost::asio::awaitable<void> tell(net::EventStream& stream, std::string last);

 private:
  struct Event {
    uint64_t number;
    std::string kind;
    std::string json;
  };
  // What came behind that number; false: it is too long ago.
  bool since(uint64_t number, std::vector<Event>& events);
  boost::asio::awaitable<void> follow();
  void add(std::string kind, std::string json);

  Backend& backend_;
  const std::string life_ = make_life();  // tells the numbers of this process from those of others
  static std::string make_life();
  std::mutex mutex_;
  std::deque<Event> events_;  // guarded by mutex_, as all that follows
  uint64_t last_ = 0;
  std::string position_;
  std::string counts_;
  std::chrono::steady_clock::time_point followed_{};
  bool following_ = false;
};

}  // namespace tabella::outbox
