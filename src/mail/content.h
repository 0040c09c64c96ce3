// A message as MailHog takes it apart: headers by name, body, and multiparts split at their boundaries
// without being decoded. Its clients and mhdynamo's readers expect exactly this; what is better about us is
// in mime/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::mail {

// Borrows from the bytes it was made of.
struct Content {
  std::map<std::string, std::vector<std::string>> headers;
  std::string_view body;
  size_t size = 0;
  std::optional<std::vector<Content>> parts;  // of a multipart
};

Content parse_content(std::string_view bytes);

}  // namespace tabella::mail
