// The sending side of SMTP: one connection to one server, opened once and then good for any number of
// letters, one after the other. What became of a letter is said per recipient, and at which step.
//
// What decides an outcome:
//   delivered  2xx to the content, for each recipient that was accepted before.
//   refused    5xx to MAIL (everybody), to RCPT (that one), to DATA or the content (those accepted so far);
//   and
//              what this server can never take: more bytes than its SIZE, an address beyond ASCII without its
//              SMTPUTF8, something that is no address; and a server that the rules for addresses forbid.
//   deferred   4xx in the same places. 421 anywhere. 552 to RCPT where it means too many recipients (RFC
//   5321,
//              4.5.3.1.10). Silence, a broken connection or nonsense before the kernel had all of the content
//              with its last dot. And whatever goes wrong before MAIL, 5xx included: a greeting or EHLO that
//              is refused speaks of this host and not of the letter, so the next one may be tried, as Postfix
//              does; TLS and logins fail by configuration, which must not cost mail.
//   unknown    silence, a broken connection or nonsense between the last dot and its reply: it may have
//   arrived.
// What comes after the reply to the content changes nothing.
//
// Content with 8-bit bytes goes out as it is, with BODY=8BITMIME where that is offered: servers that cannot
// take it are gone, and to rewrite what was signed would break it.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tabella::net {
class AddressRules;
class TlsTrust;
}  // namespace tabella::net

namespace tabella::smtp {

enum class Security {
  none,
  opportunistic,  // STARTTLS where it is offered
  required,       // STARTTLS
  implicit,       // TLS from the start, as on port 465
};

enum class Mechanism { automatic, plain, login, cram_md5 };

struct Destination {
  std::string host;  // also the name that its certificate has to show
  uint16_t port = 25;
  Security security = Security::opportunistic;
  bool check_certificate = true;  // for whoever chooses the TlsTrust
  std::string user;               // empty: no login
  std::string password;
  Mechanism mechanism = Mechanism::automatic;
  std::string helo = "localhost";
  const net::AddressRules* rules = nullptr;  // where it may be; null: anywhere. Must outlive the connection
  std::vector<boost::asio::ip::tcp::endpoint> endpoints =
      {};  // where it is, in this order; empty: look it up
};

struct Letter {
  std::string from;  // empty: <>
  std::vector<std::string> to;
  std::string_view data;  // line ends of any kind; they go out as CR LF. Not copied if they are CR LF already
  bool all_or_none = false;  // if one recipient is not accepted, it goes to nobody
};

struct Outcome {
  enum class Kind : uint8_t { delivered, deferred, refused, unknown };
  enum class Step : uint8_t { connect, greeting, hello, tls, login, sender, recipient, data, content };

  Kind kind = Kind::deferred;
  Step step = Step::connect;
  int code = 0;          // the server's, or what it would have said (552 for its SIZE); 0: there was no reply
  std::string enhanced;  // as in 5.1.1 (RFC 3463); ours where there was no reply; empty if the reply has none
  std::string
      reply;  // "250 2.0.0 Ok: queued as 4F2B", or a sentence of ours. Printable UTF-8, 500 bytes at most
};

std::string_view to_string(Outcome::Kind kind);
std::string_view to_string(Outcome::Step step);

struct Delivery {
  std::vector<Outcome> recipients;  // in the order of Letter::to
  bool reusable = false;            // the connection can take another letter
  bool unheard = false;  // it ended (lost, or 421) before the sender was accepted: safe to repeat at once
  bool secure = false;   // by TLS
  std::string peer;      // the server's address; empty: there was no connection
};

// Every wait has one of these limits. A reply has to be whole within it, however slowly it drips.
struct Timeouts {
  std::chrono::milliseconds connect{30'000};   // per address; also the lookup of the name
  std::chrono::milliseconds greeting{60'000};  // and the handshake of TLS from the start
  std::chrono::milliseconds command{60'000};   // EHLO, STARTTLS and its handshake, AUTH, MAIL, RCPT, RSET
  std::chrono::milliseconds data{60'000};
  std::chrono::milliseconds content{
      300'000};  // to send it, with a second more for each 16 KiB; and for its reply
  std::chrono::milliseconds quit{5'000};
};

// On one thread: that of the executor. Nothing may be under way when it is destroyed.
class ClientConnection {
 public:
  using Opened = std::expected<void, Outcome>;

  // `trust` must outlive it. It is expensive to make: one for all connections.
  ClientConnection(const boost::asio::any_io_executor& executor, Destination destination,
                   const net::TlsTrust& trust, Timeouts timeouts = {});
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // A limit for all that follows, beside those of the steps.
  void expire_at(std::chrono::steady_clock::time_point limit) { limit_ = limit; }

  // Until it is ready for a letter: connected, greeted, secure as asked, logged in.
  boost::asio::awaitable<Opened> open();
  // Whether that failed for TLS where TLS is only preferred, and no password is at risk without it. Then the
  // second does the same in the clear.
  bool may_go_without_tls(const Outcome& failure) const;
  boost::asio::awaitable<Opened> open_without_tls();

  // The letter must live until this is done.
  boost::asio::awaitable<Delivery> deliver(const Letter& letter);

  // Takes its leave without waiting for the answer, and closes.
  boost::asio::awaitable<void> quit();

  // Whether it is open, and the server has said nothing that nobody asked for.
  bool is_quiet();
  bool is_open() const { return open_; }
  size_t letters() const { return letters_; }  // so far
  const Destination& destination() const { return destination_; }

 private:
  using Step = Outcome::Step;
  using Kind = Outcome::Kind;
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;
  struct Line;
  struct Transaction;

  struct Reply {
    int code = 0;
    std::string text;  // without the codes; lines are separated by \n
    size_t lines = 0;
  };
  enum class Parsed { whole, partly, nonsense };
  enum class Trouble { none, lost, late, nonsense };

  // What the server said to EHLO.
  struct Offers {
    bool starttls = false;
    bool pipelining = false;
    bool eight_bit = false;
    bool utf8 = false;
    std::optional<uint64_t> size;  // 0: without a limit
    std::string logins;            // " PLAIN LOGIN "
  };

  boost::asio::awaitable<Opened> begin(bool with_tls);
  boost::asio::awaitable<Opened> connect();
  boost::asio::awaitable<std::expected<Endpoints, Outcome>> find();
  boost::asio::awaitable<Opened> greet();
  boost::asio::awaitable<Opened> say_hello();
  boost::asio::awaitable<Opened> start_tls();
  boost::asio::awaitable<Opened> secure(std::chrono::milliseconds limit);
  boost::asio::awaitable<Opened> log_in();
  boost::asio::awaitable<Opened> log_in_by(Mechanism mechanism);
  boost::asio::awaitable<Opened> command(std::string line, int kind, Step step);
  void read_offers();

  bool can_take(Transaction& transaction) const;
  boost::asio::awaitable<void> transact(Transaction& transaction);
  boost::asio::awaitable<bool> say_envelope(Transaction& transaction);
  boost::asio::awaitable<bool> hear(Transaction& transaction, size_t number);
  void append_command(const Transaction& transaction, size_t number);
  void append_sender(const Transaction& transaction);
  void take_reply(Transaction& transaction, size_t number);
  boost::asio::awaitable<void> hand_over(Transaction& transaction);
  boost::asio::awaitable<void> send_nothing();

  boost::asio::awaitable<bool> write(std::string_view bytes, std::string_view more = {});
  boost::asio::awaitable<bool> read_reply(std::chrono::milliseconds limit);
  Parsed parse_reply();
  bool parse_line(std::string_view line, bool& last);
  bool is_secure() const;
  bool has_unread() const { return at_ < unread_.size(); }
  void allow(std::chrono::milliseconds limit);
  void rest();
  void close();
  void break_off(Trouble trouble);

  Outcome said(Step step) const;
  Outcome broke(Step step, Kind kind = Kind::deferred) const;
  std::unexpected<Outcome> failed(Step step, std::string_view enhanced, std::string_view sentence) const;

  const Destination destination_;
  const net::TlsTrust& trust_;
  const Timeouts timeouts_;
  const std::shared_ptr<Line> line_;
  std::chrono::steady_clock::time_point limit_ = std::chrono::steady_clock::time_point::max();
  bool open_ = false;
  bool needs_reset_ = false;  // a transaction was begun and not ended
  size_t letters_ = 0;
  Offers offers_;
  Reply reply_;
  Trouble trouble_ = Trouble::none;  // why there is no reply
  std::string unread_;
  size_t at_ = 0;  // of unread_, what was read
  std::string commands_;
  std::string peer_;
};

}  // namespace tabella::smtp
