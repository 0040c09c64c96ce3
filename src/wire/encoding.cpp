#include "wire/encoding.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/text.h"
#include "net/http.h"

namespace tabella::wire {
namespace {

// The q of ";q=0.5;…": the first that there is; what cannot be read counts as 1.
double quality(std::string_view parameters) {
  while (!parameters.empty()) {
    const auto end = std::min(parameters.find(';'), parameters.size());
    const auto parameter = trim(parameters.substr(0, end));
    parameters.remove_prefix(std::min(end + 1, parameters.size()));
    const auto at = parameter.find("q=");
    if (at == std::string_view::npos) continue;
    const auto text = trim(parameter.substr(at + 2));
    double value = 1;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || stop != text.data() + text.size()) return 1;
    return std::clamp(value, 0.0, 1.0);
  }
  return 1;
}

}  // namespace

std::optional<Compression> choose_encoding(std::string_view accept_encoding) {
  struct Choice {
    std::optional<double> quality;
    size_t order = 0;
  };
  Choice gzip;
  Choice deflate;
  Choice any;
  size_t order = 0;
  while (!accept_encoding.empty()) {
    const auto end = std::min(accept_encoding.find(','), accept_encoding.size());
    const auto entry = accept_encoding.substr(0, end);
    accept_encoding.remove_prefix(std::min(end + 1, accept_encoding.size()));
    const auto semicolon = std::min(entry.find(';'), entry.size());
    const auto name = trim(entry.substr(0, semicolon));
    const double q = quality(entry.substr(semicolon));
    Choice* choice = net::same_header(name, "gzip")      ? &gzip
                     : net::same_header(name, "deflate") ? &deflate
                     : name == "*"                       ? &any
                                                         : nullptr;
    ++order;
    if (choice && (!choice->quality || q > *choice->quality)) *choice = {q, order};
  }
  // What "*" stands for comes after what is named.
  if (any.quality) {
    if (!gzip.quality) gzip = {any.quality, order + 1};
    if (!deflate.quality) deflate = {any.quality, order + 2};
  }
  const bool use_gzip = gzip.quality.value_or(0) > 0;
  const bool use_deflate = deflate.quality.value_or(0) > 0;
  if (!use_gzip && !use_deflate) return std::nullopt;
  if (!use_deflate) return Compression::gzip;
  if (!use_gzip) return Compression::deflate;
  if (*gzip.quality != *deflate.quality)
    return *gzip.quality > *deflate.quality ? Compression::gzip : Compression::deflate;
  return gzip.order <= deflate.order ? Compression::gzip : Compression::deflate;
}

}  // namespace tabella::wire
