// How something gets to a person: a provider takes a message and says what became of it. Whichever it is, and
// whatever is behind it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "manhunt/model.h"

namespace tabella::manhunt {

struct Message {
  std::string id;  // the same whenever it is sent again: the idempotency key
  std::string domain;
  std::string search;   // empty: it is about none (a test, a code)
  std::string attempt;  // of the search
  ChannelKind kind = ChannelKind::phone;
  std::string destination;
  std::string contact_name;
  std::string language;
  std::string subject;
  std::string text;
  std::string link;             // where it can be answered; empty: nowhere
  std::string metadata = "{}";  // JSON
};

// sent: the provider has taken it. failed: it has not, and nothing was sent. unknown: nobody can tell.
struct Sent {
  Outcome outcome = Outcome::sent;
  std::string detail;
  std::string reference;
  // It may be taken after that.
  std::optional<std::chrono::milliseconds> retry_after;
};

// Thread-safe. Never throws.
class Provider {
 public:
  Provider() = default;
  virtual ~Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  virtual std::string_view name() const = 0;
  virtual bool serves(ChannelKind kind) const = 0;
  virtual boost::asio::awaitable<Sent> send(const Message& message) = 0;
  // What is answered to its texts comes back to us.
  virtual bool takes_replies() const { return true; }
  // Its phones are listed under /manhunt/simulator.
  virtual bool is_simulator() const { return false; }
};

using Providers = std::vector<std::unique_ptr<Provider>>;

// What can be a destination on such a channel; empty: it can. Otherwise what is wrong with it.
std::string problem_with_destination(ChannelKind kind, std::string_view destination);

}  // namespace tabella::manhunt
