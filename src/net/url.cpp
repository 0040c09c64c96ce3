#include "net/url.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <boost/asio/ip/address_v6.hpp>

#include "base/text.h"

namespace tabella::net {
namespace {

// Without a zone: it names an interface of whoever wrote it.
bool is_ipv6(std::string_view host) {
  boost::system::error_code error;
  boost::asio::ip::make_address_v6(host, error);
  return !error && is_plain(host) && host.find('%') == std::string_view::npos;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

// RFC 3986, 5.2.4.
std::string without_dot_segments(std::string_view path) {
  std::string out;
  auto segments = split(path, '/');
  for (size_t i = 1; i < segments.size(); ++i) {
    const bool last = i + 1 == segments.size();
    if (segments[i] == ".") {
      if (last) out.push_back('/');
    } else if (segments[i] == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
      if (last) out.push_back('/');
    } else {
      out.append("/").append(segments[i]);
    }
  }
  return out;
}

}  // namespace

bool is_host_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  return std::ranges::all_of(split(text, '.'), [](std::string_view label) {
    return !label.empty() && std::ranges::all_of(label, [](char c) {
      c = lower(c);
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    });
  });
}

bool read_authority(std::string_view text, std::string& into, uint16_t& port) {
  std::string_view host;
  if (text.starts_with('[')) {
    const auto bracket = text.find(']');
    if (bracket == std::string_view::npos) return false;
    host = text.substr(1, bracket - 1);
    text.remove_prefix(bracket + 1);
    if (!is_ipv6(host)) return false;
  } else {
    host = text.substr(0, text.find(':'));
    text.remove_prefix(host.size());
    if (!is_host_name(host)) return false;
  }
  into = lower(host);
  if (text.empty()) return true;
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port != 0;
}

std::string Url::authority() const { return port == (tls ? 443 : 80) ? bracketed(host) : host_and_port(); }

std::string Url::host_and_port() const { return fmt::format("{}:{}", bracketed(host), port); }

std::string Url::origin() const { return fmt::format("{}://{}", tls ? "https" : "http", authority()); }

std::expected<Url, std::string> parse_url(std::string_view text) {
  const auto wrong = [&] {
    const bool secret = text.find('@') != std::string_view::npos;
    const auto shown = secret ? std::string_view("…@…") : text.substr(0, text.find('?'));
    return std::unexpected(fmt::format("'{}' is not a URL like http://localhost:8000", shown));
  };
  Url url;
  const auto scheme = lower(text.substr(0, text.find(':')));
  url.tls = scheme == "https";
  url.port = url.tls ? 443 : 80;
  auto rest = text.substr(0, text.find('#'));
  rest.remove_prefix(std::min(scheme.size(), rest.size()));
  if ((!url.tls && scheme != "http") || !rest.starts_with("://")) return wrong();
  rest.remove_prefix(3);
  const auto slash = std::min(rest.find_first_of("/?"), rest.size());
  if (slash < rest.size())
    url.path = rest[slash] == '/' ? rest.substr(slash) : fmt::format("/{}", rest.substr(slash));
  if (!read_authority(rest.substr(0, slash), url.host, url.port) || !is_plain(url.path)) return wrong();
  return url;
}

std::expected<Url, std::string> resolve_url(const Url& base, std::string_view reference) {
  reference = reference.substr(0, reference.find('#'));
  const auto begin = reference.substr(0, reference.find_first_of("/?"));
  if (begin.find(':') != std::string_view::npos) return parse_url(reference);
  if (reference.starts_with("//"))
    return parse_url(fmt::format("{}:{}", base.tls ? "https" : "http", reference));
  if (!is_plain(reference)) return std::unexpected("the address that it refers to cannot be read");
  auto url = base;
  const auto base_path = std::string_view(base.path).substr(0, base.path.find('?'));
  const auto query = std::min(reference.find('?'), reference.size());
  const auto path = reference.substr(0, query);
  if (reference.empty()) return url;
  if (path.empty())
    url.path = base_path;
  else if (path.starts_with('/'))
    url.path = without_dot_segments(path);
  else
    url.path = without_dot_segments(fmt::format("{}{}", base_path.substr(0, base_path.rfind('/') + 1), path));
  url.path.append(reference.substr(query));
  return url;
}

}  // namespace tabella::net
