#include "mail/release.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "access/secrets.h"
#include "base/json.h"
#include "base/text.h"
#include "mail/jim.h"
#include "smtp/address.h"
#include "smtp/client.h"

namespace tabella::mail {

namespace {

constexpr const char* kSetting = "outgoing";
constexpr std::chrono::seconds kReleaseTimeout{20};

using Done = std::expected<void, ReleaseError>;

std::string seal_context(const std::string& name) { return "mail outgoing " + name; }

std::optional<OutgoingServer> to_server(JsonValue json) {
  if (json.kind() != JsonValue::Kind::object) return std::nullopt;
  OutgoingServer server;
  bool fits = true;
  const auto read = [&](std::string_view name, std::string& into) {
    const auto value = find_any_case(json, name);
    if (!value) return;
    if (value->kind() == JsonValue::Kind::string)
      into = value->string();
    else if (value->kind() == JsonValue::Kind::integer)
      into = std::to_string(value->integer());  // MailHog insists on a string for the port
    else
      fits = false;
  };
  read("Name", server.name);
  read("Email", server.email);
  read("Host", server.host);
  read("Port", server.port);
  read("Username", server.username);
  read("Password", server.password);
  read("Mechanism", server.mechanism);
  if (const auto save = find_any_case(json, "Save")) {
    fits = fits && save->kind() == JsonValue::Kind::boolean;
    server.save = save->kind() == JsonValue::Kind::boolean && save->boolean();
  }
  return fits ? std::optional(std::move(server)) : std::nullopt;
}

std::optional<smtp::Mechanism> mechanism_of(std::string_view name) {
  if (name.empty()) return smtp::Mechanism::automatic;
  if (name == "PLAIN") return smtp::Mechanism::plain;
  if (name == "LOGIN") return smtp::Mechanism::login;
  if (name == "CRAMMD5" || name == "CRAM-MD5") return smtp::Mechanism::cram_md5;
  return std::nullopt;
}

// With the password, sealed: for ourselves.
std::string to_stored_json(const OutgoingServer& server) {
  std::string json;
  {
    JsonObjectWriter object(json);
    object.string("Name", server.name);
    object.string("Email", server.email);
    object.string("Host", server.host);
    object.string("Port", server.port);
    object.string("Username", server.username);
    object.string("Password", server.password);
    object.string("Mechanism", server.mechanism);
    object.boolean("Save", true);
  }
  return json;
}

std::unexpected<ReleaseError> refuse(int status, std::string message) {
  return std::unexpected(ReleaseError{.status = status, .message = std::move(message)});
}

// How to reach it, if all that was said of it can be meant.
std::expected<smtp::Relay, ReleaseError> relay_to(const OutgoingServer& server) {
  smtp::Relay relay{.host = server.host, .user = server.username, .password = server.password};
  const auto port = server.port.empty() ? std::string("25") : server.port;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), relay.port);
  if (error != std::errc{} || end != port.data() + port.size() || relay.port == 0)
    return refuse(400, fmt::format("'{}' is no port", server.port));
  if (server.host.empty()) return refuse(400, "Host is missing");
  if (!is_plain(server.host)) return refuse(400, fmt::format("'{}' is no host", server.host));
  if (server.email.empty()) return refuse(400, "Email is missing: whom is it to go to?");
  if (!smtp::is_address(server.email))
    return refuse(400, fmt::format("'{}' is no address like whom@to.send.to", server.email));
  const auto mechanism = mechanism_of(server.mechanism);
  if (!mechanism && !(server.username.empty() && server.password.empty()))
    return refuse(400, "Mechanism is PLAIN, LOGIN or CRAMMD5");
  relay.mechanism = mechanism.value_or(smtp::Mechanism::automatic);
  if (relay.port == 465) relay.security = smtp::Security::implicit;
  // Without a password there is nothing to give away: encrypted to whomever is better than in the clear.
  relay.check_certificate = !server.username.empty() || relay.security == smtp::Security::implicit;
  return relay;
}

}  // namespace

std::optional<OutgoingServer> outgoing_from_json(std::string_view text) {
  JsonDocument document;
  const auto json = document.parse(text);
  return json ? to_server(*json) : std::nullopt;
}

void append_outgoing_json(std::string& out, const OutgoingServer& server) {
  JsonObjectWriter object(out);
  object.string("Name", server.name);
  object.boolean("Save", server.save);
  object.string("Email", server.email);
  object.string("Host", server.host);
  object.string("Port", server.port);
  object.string("Username", server.username);
  object.string("Password", "");
  object.string("Mechanism", server.mechanism);
}

std::map<std::string, OutgoingServer> read_outgoing_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("the file with outgoing servers {} cannot be read", path));
  std::stringstream text;
  text << file.rdbuf();
  JsonDocument document;
  const auto content = text.str();
  const auto json = document.parse(content);
  if (!json || json->kind() != JsonValue::Kind::object)
    throw std::runtime_error(
        fmt::format("the file with outgoing servers {} is no JSON object of servers by name", path));
  std::map<std::string, OutgoingServer> servers;
  for (JsonElements members(*json); members.next();) {
    auto server = to_server(members.value());
    if (!server || server->host.empty())
      throw std::runtime_error(
          fmt::format("the file with outgoing servers {}: '{}' has no host", path, members.key()));
    server->name = members.key();
    server->trusted = true;
    servers.emplace(members.key(), std::move(*server));
  }
  return servers;
}

store::Async<std::map<std::string, OutgoingServer>> Release::servers() {
  TABELLA_CO_ASSIGN(auto saved, co_await settings_.all(kSetting));
  auto all = servers_;
  for (const auto& [name, json] : saved)
    if (auto server = outgoing_from_json(json)) all.emplace(name, std::move(*server));
  co_return all;
}

boost::asio::awaitable<Done> Release::save(OutgoingServer how) {
  if (!how.password.empty()) {
    auto sealed = secrets_.seal(how.password, seal_context(how.name));
    if (!sealed) co_return refuse(503, std::move(sealed).error());
    how.password = std::move(*sealed);
  }
  const auto saved = co_await settings_.put(kSetting, how.name, to_stored_json(how));
  if (!saved) co_return refuse(503, saved.error().message);
  co_return Done();
}

boost::asio::awaitable<std::expected<OutgoingServer, ReleaseError>> Release::complete(OutgoingServer how) {
  how.trusted = false;
  if (!how.save && how.name.empty()) co_return how;
  auto known = co_await servers();
  if (!known) co_return refuse(503, known.error().message);
  const auto named = known->find(how.name);
  if (how.save) {
    if (how.name.empty()) co_return refuse(400, "a server that is saved needs a name");
    if (named != known->end()) co_return refuse(400, fmt::format("there is a server {} already", how.name));
    co_return how;
  }
  if (named == known->end()) co_return refuse(400, fmt::format("there is no server {}", how.name));
  auto server = std::move(named->second);
  server.save = false;
  if (!how.email.empty()) server.email = how.email;
  if (!server.trusted && !server.password.empty()) {
    auto password = secrets_.open(server.password, seal_context(how.name));
    if (!password) co_return refuse(503, std::move(password).error());
    server.password = std::move(*password);
  }
  co_return server;
}

boost::asio::awaitable<Done> Release::release(const Message& message, OutgoingServer how) {
  auto server = co_await complete(std::move(how));
  if (!server) co_return std::unexpected(std::move(server).error());
  auto relay = relay_to(*server);
  if (!relay) co_return std::unexpected(std::move(relay).error());
  relay->helo = mail_.options().hostname;
  if (!server->trusted) relay->rules = &rules_;
  const auto data = trace_headers(message, mail_.options().hostname) + message.raw;
  smtp::Letter letter{.from = "nobody@" + mail_.options().hostname, .to = {server->email}, .data = data};
  const auto sent = co_await smtp::send(std::move(*relay), std::move(letter), kReleaseTimeout);
  if (!sent) co_return refuse(sent.error().refused ? 403 : 500, sent.error().message);
  if (server->save) co_return co_await save(*server);
  co_return Done();
}

}  // namespace tabella::mail
