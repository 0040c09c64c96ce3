// By which names a server may be called. A page of some other site can make a browser call any name that its
// owner points to this machine (DNS rebinding); such a call has that name in its Host header.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace tabella::net {

class KnownHosts {
 public:
  KnownHosts() = default;  // all are
  explicit KnownHosts(std::vector<std::string> names) : names_(std::move(names)) {}

  // Whether a Host header names us: by an address, by a name without dots (which nobody can register), or by
  // one of the names.
  bool knows(std::string_view host) const;

 private:
  std::optional<std::vector<std::string>> names_;
};

// Whether a page of that origin may read our answers and change things here: programs send no Origin, pages
// of our own send ours, and others must be allowed by name ("*": all).
bool may_call(const HttpRequest& request, std::string_view allowed_origin);

}  // namespace tabella::net
