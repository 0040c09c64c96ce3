// Tells other programs of messages: a POST for each, signed, and tried again until it is taken.
//
// A timer is set before the message is kept, so that neither is there without the other for long: a timer
// whose message never came is dropped. Signatures are those of standardwebhooks.com.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "mail/service.h"
#include "mail/settings.h"
#include "net/client.h"
#include "schedule/schedule.h"

namespace tabella::mail {

struct Webhook {
  std::string id;
  std::string url;
  std::string secret;  // empty: not signed
  std::string query;   // empty: all messages
};

// Thread-safe.
class Webhooks {
 public:
  static constexpr const char* kKind = "mail-webhook";

  // `fixed` are there whatever is added and removed.
  Webhooks(Mail& mail, Settings& settings, schedule::Schedule& schedule, std::vector<Webhook> fixed);

  store::Async<std::vector<Webhook>> all();
  store::Async<Webhook> add(Webhook hook);
  store::Async<bool> remove(std::string id);

  // Before the message with that id is kept.
  store::Async<void> announce(const std::string& id);
  boost::asio::awaitable<void> deliver(const schedule::Firing& firing);

  void write_metrics(metrics::Exposition& out) const;

 private:
  boost::asio::awaitable<void> post(const Webhook& hook, const Message& message);
  std::shared_ptr<net::HttpClient> client_for(const net::Url& url);

  Mail& mail_;
  Settings& settings_;
  schedule::Schedule& schedule_;
  const std::vector<Webhook> fixed_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<net::HttpClient>> clients_;  // guarded by mutex_; by host
  std::vector<Webhook> known_;                                       // guarded by mutex_
  Elapsed known_since_{};                                            // guarded by mutex_
  bool known_once_ = false;                                          // guarded by mutex_
  metrics::Counter delivered_{0};
  metrics::Counter failed_{0};
};

// What goes into the header webhook-signature.
std::string webhook_signature(const std::string& secret, const std::string& id, const std::string& timestamp,
                              const std::string& body);

}  // namespace tabella::mail
