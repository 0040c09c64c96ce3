// Mail, put together: its parts, its ports, its background.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>

#include "app/options.h"
#include "base/clock.h"
#include "base/passwords.h"
#include "mail/api.h"
#include "mail/feed.h"
#include "mail/host.h"
#include "mail/reconciler.h"
#include "mail/worker.h"
#include "net/threads.h"
#include "schedule/schedule.h"
#include "smtp/server.h"
#include "store/stream_reader.h"

namespace tabella::app {

// Mail's options with the names of its tables in them, as all processes on the store call them.
mail::MailOptions mail_tables(const std::string& prefix);

class MailSide {
 public:
  // `shared`: other processes may be using the store. Its tables must be there. Throws std::runtime_error
  // with a sentence for the user.
  MailSide(store::Store& store, const Clock& clock, const ServeOptions& options, net::IoThreads& threads,
           net::Limits& limits, bool shared);
  ~MailSide();
  MailSide(const MailSide&) = delete;
  MailSide& operator=(const MailSide&) = delete;

  static std::vector<store::TablePlan> plans(const ServeOptions& options);

  mail::Api& api() { return api_; }
  void announce() const;
  void write_metrics(metrics::Exposition& out) const;

  // In this order: no more waiting, no more mail, nothing in the background.
  void stop_waiting() {
    api_.stop();
    feed_.stop();
  }
  void stop(std::chrono::milliseconds grace);

 private:
  void listen(net::IoThreads& threads, net::Limits& limits, const MailOptions& options);

  const MailOptions& options_;
  std::optional<net::TlsIdentity> identity_;
  std::optional<Passwords> passwords_;
  mail::Mail mail_;
  mail::Settings settings_;
  schedule::Schedule schedule_;
  mail::Jim jim_;
  mail::Arrivals arrivals_;
  net::IoThreads live_;  // where messages are made ready for those who listen
  mail::Feed feed_;
  mail::Release release_;
  mail::Webhooks webhooks_;
  mail::Api api_;
  mail::MailHost host_;
  mail::Worker worker_;
  mail::Reconciler reconciler_;
  store::StreamReader stream_;
  net::IoThreads background_;
  std::vector<std::future<void>> running_;
  std::optional<smtp::Server> smtp_;
  std::optional<smtp::Server> smtps_;
};

}  // namespace tabella::app
