// Credentials of the role that a container or an instance runs with, from the endpoints that AWS gives them.
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/json.h"
#include "net/client.h"
#include "remote/credentials.h"

namespace tabella::remote {

using boost::asio::awaitable;

namespace {

constexpr std::chrono::seconds kPatience{2};

// The body of a 200, or what went wrong.
awaitable<std::expected<std::string, std::string>> ask(net::Url url, std::string_view method,
                                                       std::string headers, Deadline deadline) {
  net::HttpClient client(url, {.max_connections = 1});
  const auto head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n{}\r\n", method, url.path,
                                url.authority(), headers);
  const auto reply =
      co_await client.send(head, {}, std::min(deadline, std::chrono::steady_clock::now() + kPatience));
  if (!reply) co_return std::unexpected(reply.error().message);
  if (reply->status() != 200)
    co_return std::unexpected(fmt::format("{} answered {}", url.authority(), reply->status()));
  co_return std::string(reply->body());
}

// It may be answered the next time.
std::unexpected<CredentialError> unanswered(std::string message) {
  return std::unexpected(CredentialError{.message = std::move(message), .passing = true});
}
std::unexpected<CredentialError> wrong(std::string message) {
  return std::unexpected(CredentialError{.message = std::move(message)});
}

Place read_role(std::string_view body, std::string_view source) {
  JsonDocument document;
  const auto json = document.parse(body);
  Credentials found;
  const auto text = [&](std::string_view name) { return json ? json->text(name) : std::string_view(); };
  found.access_key = text("AccessKeyId");
  found.secret_key = text("SecretAccessKey");
  found.session_token = text("Token");
  // What cannot be read is taken to end soon.
  if (const auto expiration = text("Expiration"); !expiration.empty())
    found.expires =
        parse_iso_time(expiration).value_or(std::chrono::system_clock::now() + std::chrono::minutes{15});
  if (found.access_key.empty() || found.secret_key.empty())
    return unanswered(fmt::format("{} gave no credentials", source));
  return found;
}

// The token is a secret that goes only to where nobody else listens.
bool may_have_token(const net::Url& url) {
  const bool is_address = url.host.find_first_not_of("0123456789.") == std::string::npos;
  return url.tls || url.host == "169.254.170.2" || url.host == "169.254.170.23" || url.host == "localhost" ||
         url.host == "::1" || url.host == "fd00:ec2::23" || (is_address && url.host.starts_with("127."));
}

std::string first_line(const std::string& text) {
  return text.substr(0, std::min(text.find_first_of("\r\n"), text.size()));
}

std::string container_token() {
  const auto path = environment_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (path.empty()) return first_line(environment_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return first_line(text.str());
}

}  // namespace

awaitable<Place> from_container(Deadline deadline) {
  auto address = environment_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const auto relative = environment_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !relative.empty())
    address = "http://169.254.170.2" + relative;
  if (address.empty()) co_return std::nullopt;
  const auto url = net::parse_url(address);
  if (!url) co_return wrong(fmt::format("AWS_CONTAINER_CREDENTIALS_FULL_URI: {}", url.error()));
  if (!may_have_token(*url))
    co_return wrong(
        fmt::format("AWS_CONTAINER_CREDENTIALS_FULL_URI: {} is neither https nor on this host", url->host));
  const auto token = container_token();
  const auto body =
      co_await ask(*url, "GET", token.empty() ? "" : fmt::format("Authorization: {}\r\n", token), deadline);
  if (!body) co_return unanswered(fmt::format("the container's credentials: {}", body.error()));
  co_return read_role(*body, "the container's endpoint");
}

awaitable<Place> from_instance(Deadline deadline) {
  if (environment_variable("AWS_EC2_METADATA_DISABLED") == "true") co_return std::nullopt;
  auto address = environment_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const bool asked_for = !address.empty();
  if (address.empty()) address = "http://169.254.169.254";
  while (address.ends_with('/')) address.pop_back();
  const auto at = [&](std::string_view path) { return net::parse_url(fmt::format("{}{}", address, path)); };
  const auto token_url = at("/latest/api/token");
  if (!token_url) co_return wrong(fmt::format("AWS_EC2_METADATA_SERVICE_ENDPOINT: {}", token_url.error()));
  constexpr const char* kLifetime = "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n";
  auto token = co_await ask(*token_url, "PUT", kLifetime, deadline);
  if (!token) token = co_await ask(*token_url, "PUT", kLifetime, deadline);  // it is slow at times
  if (!token && !asked_for) co_return std::nullopt;                          // not on an instance
  if (!token) co_return unanswered(fmt::format("the instance's metadata: {}", token.error()));
  const auto header = fmt::format("X-aws-ec2-metadata-token: {}\r\n", first_line(*token));
  constexpr std::string_view kRoles = "/latest/meta-data/iam/security-credentials/";
  const auto role = co_await ask(*at(kRoles), "GET", header, deadline);
  if (!role) co_return unanswered(fmt::format("the instance has no role: {}", role.error()));
  const auto role_url = at(fmt::format("{}{}", kRoles, first_line(*role)));
  if (!role_url) co_return wrong("the instance's role has a name that cannot be asked for");
  const auto body = co_await ask(*role_url, "GET", header, deadline);
  if (!body) co_return unanswered(fmt::format("the instance's role: {}", body.error()));
  co_return read_role(*body, "the instance's metadata");
}

}  // namespace tabella::remote
