#include "app/sendmail.h"

#include <pwd.h>
#include <sysexits.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "base/clock.h"
#include "base/environment.h"
#include "base/ids.h"
#include "mail/id.h"
#include "mime/header.h"
#include "net/url.h"
#include "smtp/client.h"

namespace tabella::app {
namespace {

constexpr std::chrono::seconds kPatience{60};

constexpr std::string_view kHelp =
    "Usage: tabella sendmail [options] [recipient …] < message\n"
    "Hands the message on standard input to an SMTP server.\n\n"
    "  -t                 take recipients from the To, Cc and Bcc headers; Bcc is taken out\n"
    "  -f, -r, --from ADDRESS   the sender (MH_SENDMAIL_FROM; otherwise user@host)\n"
    "  -F NAME            the sender's name, for a From header that is missing\n"
    "  -i, -oi            a line with a lone dot does not end the message\n"
    "  --smtp-addr HOST:PORT    the server (TABELLA_SENDMAIL_SMTP, MH_SENDMAIL_SMTP_ADDR; otherwise "
    "localhost:1025)\n"
    "  -v                 say what is sent where\n"
    "Other options of sendmail that change nothing here (-o…, -A, -B, -e, -G, -L, -N, -O, -R, -V, -m, -n, "
    "-U) are accepted.\n";

struct SendmailArguments {
  bool from_headers = false;
  bool ignore_dot = false;
  bool verbose = false;
  bool help = false;
  std::string from;
  std::string name;
  std::string server;
  std::vector<std::string> recipients;
  std::string mistake;
};

std::string own_address() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const auto* user = getpwuid(getuid());  // NOLINT(concurrency-mt-unsafe): there is one thread
  return fmt::format("{}@{}", user ? user->pw_name : "nobody", host[0] ? host.data() : "localhost");
}

// Options of sendmail that mean nothing to somebody who only hands a message over.
bool changes_nothing(std::string_view argument) {
  static constexpr std::array<std::string_view, 5> kWhole = {"--long-o", "-bm", "-m", "-n", "-U"};
  static constexpr std::string_view kLetters = "oABeGLNORV";  // with something behind them
  return std::ranges::find(kWhole, argument) != kWhole.end() ||
         (argument.size() > 1 && kLetters.find(argument[1]) != std::string_view::npos);
}

SendmailArguments read_arguments(const std::vector<std::string>& arguments) {
  SendmailArguments given;
  bool only_recipients = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    // -fADDRESS, -f ADDRESS, --from=ADDRESS, --from ADDRESS
    const auto value_of = [&](std::string_view flag) -> std::string {
      if (argument.size() > flag.size())
        return argument.substr(flag.size() + (argument[flag.size()] == '=' ? 1 : 0));
      if (i + 1 < arguments.size()) return arguments[++i];
      given.mistake = fmt::format("{} needs a value", flag);
      return {};
    };
    if (only_recipients || !argument.starts_with('-') || argument == "-") {
      given.recipients.push_back(argument);
    } else if (argument == "--") {
      only_recipients = true;
    } else if (argument == "--help" || argument == "-h") {
      given.help = true;
    } else if (argument.starts_with("--from")) {
      given.from = value_of("--from");
    } else if (argument.starts_with("--smtp-addr")) {
      given.server = value_of("--smtp-addr");
    } else if (argument == "--verbose" || argument == "-v") {
      given.verbose = true;
    } else if (argument == "-i" || argument == "-oi" || argument == "--long-i") {
      given.ignore_dot = true;
    } else if (argument == "-t" || argument == "--long-t" || argument == "-ti" || argument == "-it") {
      given.from_headers = true;
      given.ignore_dot = given.ignore_dot || argument.size() == 3;
    } else if (argument.starts_with("-f") || argument.starts_with("-r")) {
      given.from = value_of(argument.substr(0, 2));
    } else if (argument.starts_with("-F")) {
      given.name = value_of("-F");
    } else if (argument.starts_with("-b") && argument != "-bm") {
      given.mistake = fmt::format("{} is not known here: this sendmail only sends", argument);
    } else if (!changes_nothing(argument)) {
      given.mistake = fmt::format("the option {} is not known; try: tabella sendmail --help", argument);
    }
    // -N and its like may have their value in the next argument.
    if (argument == "-N" || argument == "-R" || argument == "-V") ++i;
  }
  return given;
}

std::string read_message(bool ignore_dot) {
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (ignore_dot) return text;
  if (text.starts_with(".\n") || text.starts_with(".\r\n")) return {};
  const auto unix_end = text.find("\n.\n");
  const auto dos_end = text.find("\n.\r\n");
  return text.substr(0, std::min({unix_end, dos_end, text.size()}) == text.size()
                            ? text.size()
                            : std::min(unix_end, dos_end) + 1);
}

// The message without the headers of that name.
std::string without_header(const std::string& message, std::string_view name) {
  std::string out;
  bool skipping = false;
  for (size_t at = 0; at < message.size();) {
    const auto end = std::min(message.find('\n', at), message.size() - 1) + 1;
    const auto line = message.substr(at, end - at);
    if (line == "\n" || line == "\r\n") return out + message.substr(at);
    const bool continues = line.front() == ' ' || line.front() == '\t';
    if (!continues) {
      auto rest = std::string_view(line);
      const auto headers = mime::take_headers(rest);
      skipping = mime::find_header(headers, name) != nullptr;
    }
    if (!skipping) out += line;
    at = end;
  }
  return out;
}

// What a mail program adds to a message that lacks it.
std::string missing_headers(const std::vector<mime::Header>& headers, const SendmailArguments& given) {
  std::string added;
  if (!mime::find_header(headers, "from"))
    added += given.name.empty() ? fmt::format("From: {}\r\n", given.from)
                                : fmt::format("From: \"{}\" <{}>\r\n", given.name, given.from);
  if (!mime::find_header(headers, "date"))
    added += fmt::format("Date: {}\r\n", mail::mail_date(SystemClock().now().time_since_epoch().count()));
  if (!mime::find_header(headers, "message-id"))
    added += fmt::format("Message-ID: <{}@{}>\r\n", make_uuid(), given.from.substr(given.from.find('@') + 1));
  return added;
}

int complain(int code, const std::string& message) {
  fmt::print(stderr, "tabella sendmail: {}\n", message);
  return code;
}

std::string first_of(std::initializer_list<std::string> texts) {
  for (const auto& text : texts)
    if (!text.empty()) return text;
  return {};
}

}  // namespace

int sendmail(const std::vector<std::string>& arguments) {
  auto given = read_arguments(arguments);
  if (given.help) {
    fmt::print("{}", kHelp);
    return EX_OK;
  }
  if (!given.mistake.empty()) return complain(EX_USAGE, given.mistake);
  given.from = first_of({given.from, environment_variable("MH_SENDMAIL_FROM"), own_address()});
  given.server = first_of({given.server, environment_variable("TABELLA_SENDMAIL_SMTP"),
                           environment_variable("MH_SENDMAIL_SMTP_ADDR"), "localhost:1025"});
  smtp::Relay relay{.security = smtp::Security::none};
  if (!net::read_authority(given.server, relay.host, relay.port))
    return complain(EX_USAGE, fmt::format("'{}' is not HOST:PORT", given.server));
  auto message = read_message(given.ignore_dot);
  if (message.empty()) return complain(EX_DATAERR, "there is no message on standard input");
  std::string_view rest = message;
  const auto headers = mime::take_headers(rest);
  if (given.from_headers || given.recipients.empty()) {
    for (const auto* name : {"to", "cc", "bcc"})
      for (const auto& header : headers)
        if (mime::find_header({header}, name))
          for (const auto& address : mime::parse_addresses(header.raw))
            given.recipients.push_back(address.address);
    message = without_header(message, "bcc");
  }
  std::ranges::sort(given.recipients);
  given.recipients.erase(std::ranges::unique(given.recipients).begin(), given.recipients.end());
  if (given.recipients.empty())
    return complain(EX_USAGE, "there are no recipients: name them, or give To, Cc or Bcc headers");
  if (given.verbose)
    fmt::print(stderr, "{} from {} to {}\n", given.server, given.from, fmt::join(given.recipients, ", "));
  // Where there are no headers at all, the text must not become one.
  message = missing_headers(headers, given) +
            (headers.empty() && !message.starts_with('\n') && !message.starts_with("\r\n") ? "\r\n" : "") +
            message;
  boost::asio::io_context context;
  auto sent = boost::asio::co_spawn(
      context,
      smtp::send(std::move(relay), {.from = given.from, .to = given.recipients, .data = message}, kPatience),
      boost::asio::use_future);
  context.run();
  const auto result = sent.get();
  if (result) return EX_OK;
  return complain(result.error().code >= 500 ? EX_UNAVAILABLE : EX_TEMPFAIL, result.error().message);
}

}  // namespace tabella::app
