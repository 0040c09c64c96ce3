// Sends attempts by the providers of their channel, one after the other until one takes it. Each try is
// written down before it is made: what a crash leaves between is unknown, and is made again with the same
// idempotency key.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "manhunt/channel.h"
#include "manhunt/domains.h"
#include "manhunt/model.h"
#include "manhunt/wording.h"
#include "store/store.h"

namespace tabella::manhunt {

struct SenderOptions {
  std::string base;  // what links begin with
  std::chrono::milliseconds link_ttl = std::chrono::hours{24};
};

// Thread-safe.
class Sender {
 public:
  Sender(store::Store& store, const Clock& clock, const Providers& providers, SenderOptions options,
         std::string table)
      : store_(store),
        clock_(clock),
        providers_(providers),
        options_(std::move(options)),
        table_(std::move(table)) {}

  // The next try that is to be made of an attempt, as it is written down before; empty: no provider serves
  // its channel.
  std::optional<Try> first_try(ChannelKind kind) const;

  // Makes the tries of attempts that go as one message; the first is written down in their rows already, as
  // pending. Nothing: they are finished, and that is written down. Otherwise how long to wait before
  // begin_again() and this make another.
  store::Async<std::optional<std::chrono::milliseconds>> send(std::span<Attempt> attempts,
                                                              const Message& message);
  // Writes down the first try of attempts that go as one message. Those whose searches go on come to stand
  // first; how many they are.
  store::Async<size_t> begin(std::span<Attempt> attempts);
  // After a crash, or a wait: what was pending is unknown, and another try is written down, where there is
  // one to be made. How many go on, as above; the others are finished.
  store::Async<size_t> begin_again(std::span<Attempt> attempts);

  // Whether there is another try to be made of one whose last has failed.
  bool has_next(const Attempt& attempt) const;
  // No more tries are made of what has failed, or what a crash or a wait has left. `why`, unless its last try
  // says it, or its search is over.
  store::Async<void> give_up(Attempt attempt, std::string why = {});

  // A message that belongs to no search.
  boost::asio::awaitable<std::pair<std::string, Sent>> send_alone(const Message& message);

  // What an attempt is about, and the message that it goes as.
  Occasion occasion_of(const Search& search, const Contact& contact, const Domain& domain,
                       const Attempt& attempt) const;
  Message message_of(const Occasion& occasion, const Attempt& attempt) const;
  // Whether what is sent on a channel can be answered on it, for all that we know.
  bool takes_replies(ChannelKind kind) const;

  void write_metrics(metrics::Exposition& out) const;

 private:
  store::Async<size_t> begin_next(std::span<Attempt> attempts, const Provider& provider);
  store::Async<void> write_tries(std::span<const Attempt> attempts);
  store::Async<void> finish(std::span<Attempt> attempts, bool sent, bool simulated,
                            std::string_view why = {});
  store::Async<void> unlist_if_over(const Attempt& attempt);
  Provider* find(ChannelKind kind, std::string_view name) const;
  Provider* after(ChannelKind kind, const Provider* provider) const;
  // Who makes the next try; nobody: there were enough.
  Provider* next_for(ChannelKind kind, const std::vector<Try>& tries) const;

  store::Store& store_;
  const Clock& clock_;
  const Providers& providers_;
  const SenderOptions options_;
  const std::string table_;
  metrics::Counter sent_{0};
  metrics::Counter failed_{0};
  metrics::Counter unknown_{0};
};

}  // namespace tabella::manhunt
