// The server's side of one SMTP session (RFC 5321 with PIPELINING, SIZE, 8BITMIME, SMTPUTF8,
// ENHANCEDSTATUSCODES, STARTTLS, AUTH, CHUNKING): from the greeting to QUIT. What becomes of the messages is
// the Host's business; how bytes travel is the Channel's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>

#include "base/passwords.h"
#include "net/budget.h"
#include "smtp/address.h"

namespace tabella::smtp {

// One message with all that the session knows about it.
struct Envelope {
  std::string peer;  // its address
  std::string helo;
  std::string user;  // who authenticated; empty: nobody
  bool extended = false;
  bool secure = false;
  bool utf8 = false;
  std::string from;  // without brackets; empty: <>
  std::vector<std::string> to;
  std::string data;  // as it was received, dots taken off
};

struct Reply {
  int code = 250;
  std::string text;    // with the enhanced status code in front, if it has one; lines by '\n'
  bool close = false;  // the session ends with it
};

// What a user says who he is.
struct Credentials {
  std::string user;
  std::string password;   // PLAIN, LOGIN
  std::string challenge;  // CRAM-MD5: what was asked, and
  std::string digest;     // the answer, in hex
};

// Whom a session is for. Called on the session's thread.
class Host {
 public:
  virtual ~Host() = default;

  // Before the greeting. False: the connection is closed without a word.
  virtual bool takes_connection() { return true; }
  // After each piece that was read and answered. False: the connection is closed without a word.
  virtual bool goes_on() { return true; }
  // How to refuse it; nothing: it is fine.
  virtual std::optional<Reply> refuse_sender(const Envelope&) { return {}; }
  virtual std::optional<Reply> refuse_recipient(const Envelope&, const std::string& /*address*/) {
    return {};
  }
  virtual std::optional<Reply> refuse_message(const Envelope&) { return {}; }
  virtual std::optional<Reply> refuse_login(const Credentials&) { return {}; }
  virtual boost::asio::awaitable<Verdict> may_log_in(Credentials credentials) = 0;
  // Takes the message, durably, before it answers with 250.
  virtual boost::asio::awaitable<Reply> take(Envelope envelope) = 0;
};

class Channel {
 public:
  virtual ~Channel() = default;
  // 0: the other side is gone.
  virtual boost::asio::awaitable<size_t> read_some(boost::asio::mutable_buffer room) = 0;
  virtual boost::asio::awaitable<bool> write(std::string_view bytes) = 0;
  virtual boost::asio::awaitable<bool> start_tls() = 0;
  virtual bool can_start_tls() const = 0;
  virtual bool is_secure() const = 0;
  virtual void expire_in(std::chrono::milliseconds timeout) = 0;
  // That a message under way takes memory while more of it is waited for.
  virtual void set_holding(bool /*holding*/) {}
};

struct SessionOptions {
  std::string hostname = "localhost";
  size_t max_message = 50u << 20;
  size_t max_recipients = 100;
  size_t max_line = 1u << 20;  // of a message
  bool require_tls = false;    // before MAIL and AUTH
  bool require_login = false;  // before MAIL
  bool offer_cram_md5 = true;  // needs passwords that can be read
  std::chrono::seconds idle{300};
  std::chrono::seconds longest{3600};
  // Bytes that all messages being received may take together.
  size_t budget = 512u << 20;
};

class Session {
 public:
  // All must outlive it; `budget_used` is shared by all sessions.
  Session(Channel& channel, Host& host, const SessionOptions& options, std::atomic<size_t>& budget_used,
          std::string peer);

  boost::asio::awaitable<void> run();

 private:
  enum class Line { whole, ended, refused };

  // The next line without its end, in line_.
  boost::asio::awaitable<Line> read_line(size_t longest);
  boost::asio::awaitable<bool> read_more();
  boost::asio::awaitable<bool> flush();
  void say(int code, std::string_view text);
  void say(const Reply& reply);

  boost::asio::awaitable<void> run_command();  // line_
  void hello(std::string_view name, bool extended);
  boost::asio::awaitable<void> start_tls();
  boost::asio::awaitable<void> log_in(std::string_view argument);
  boost::asio::awaitable<std::optional<std::string>> ask(std::string_view challenge);
  boost::asio::awaitable<std::optional<Credentials>> ask_for_credentials(std::string mechanism,
                                                                         std::string initial);
  void mail(std::string_view argument);
  void recipient(std::string_view argument);
  boost::asio::awaitable<void> data();
  boost::asio::awaitable<void> chunk(std::string_view argument);
  boost::asio::awaitable<void> deliver();
  void reset();
  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }

  Channel& channel_;
  Host& host_;
  const SessionOptions& options_;
  net::BudgetShare budget_;
  const std::string peer_;
  const std::chrono::steady_clock::time_point until_;
  std::string buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::string out_;
  std::string line_;
  bool open_ = true;
  size_t mistakes_ = 0;

  std::string helo_;
  bool extended_ = false;
  std::string user_;
  bool has_sender_ = false;
  Envelope envelope_;  // from, to and the data of chunks so far
  bool chunks_ = false;
  bool chunks_failed_ = false;
};

}  // namespace tabella::smtp
