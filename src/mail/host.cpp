#include "mail/host.h"

#include <utility>

#include "base/log.h"

namespace tabella::mail {

using boost::asio::awaitable;
using smtp::Credentials;
using smtp::Envelope;
using smtp::Reply;

class MailHost::Session final : public smtp::Host {
 public:
  explicit Session(MailHost& host) : host_(host), jim_(host.jim_), chances_(host.jim_.chances()) {}

  const std::optional<Chances>& chances() const { return chances_; }

  bool takes_connection() override { return !jim_.refuses_connection(chances_); }
  bool goes_on() override { return !jim_.disconnects(chances_); }
  std::optional<Reply> refuse_sender(const Envelope& envelope) override {
    return jim_.refuses(Step::At::sender, chances_, envelope.from, {});
  }
  std::optional<Reply> refuse_recipient(const Envelope& envelope, const std::string& address) override {
    return jim_.refuses(Step::At::recipient, chances_, envelope.from, {address});
  }
  std::optional<Reply> refuse_message(const Envelope& envelope) override {
    return jim_.refuses(Step::At::message, {}, envelope.from, envelope.to);
  }
  std::optional<Reply> refuse_login(const Credentials& credentials) override {
    return jim_.refuses(Step::At::login, chances_, credentials.user, {});
  }

  awaitable<Verdict> may_log_in(Credentials credentials) override {
    if (!host_.check_) co_return Verdict::right;
    if (!credentials.challenge.empty())
      co_return host_.check_->check_digest(credentials.user, credentials.challenge, credentials.digest);
    co_return co_await host_.check_->check(credentials.user, credentials.password);
  }

  awaitable<Reply> take(Envelope envelope) override {
    try {
      const auto id = co_await host_.mail_.take(std::move(envelope));
      if (id) {
        host_.arrivals_.publish(*id);
        co_return Reply{.code = 250, .text = "2.0.0 Ok: queued as " + *id};
      }
      log::error("a message could not be kept: {}", id.error().message);
    } catch (const std::exception& error) {
      log::error("a message could not be kept: {}", error.what());
    }
    co_return Reply{.code = 452, .text = "4.3.0 Unable to store message; try again later"};
  }

 private:
  MailHost& host_;
  Jim& jim_;
  const std::optional<Chances> chances_;
};

smtp::Server::Accepted MailHost::invite() {
  auto session = std::make_unique<Session>(*this);
  const auto speed = jim_.link_speed(session->chances());
  return {.host = std::move(session), .speed = speed};
}

}  // namespace tabella::mail
