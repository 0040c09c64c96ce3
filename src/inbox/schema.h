// JSON Schema (draft 2020-12) for messages: what an inbox may ask of them.
//
// All of its assertions and applicators but dynamic references, unevaluated… and dependent… are understood;
// `format` is an annotation, as the standard has it. A schema that says anything else is refused when it is
// set, rather than overlooked later. Patterns are RE2's, which take no more time than the text is long. What
// may be spent on a message is limited: what takes longer is refused.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace tabella::inbox {

inline constexpr size_t kMostSchema = 32 * 1024;

// Thread-safe.
class Schema {
 public:
  // An error says what is wrong with it.
  static Checked<std::shared_ptr<const Schema>> read(std::string_view json);
  ~Schema();
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  // Why a value is not as the schema asks: "body.lines[2]: expected a number"; empty: it is.
  std::string mismatch(JsonValue value) const;

 private:
  struct Parts;
  explicit Schema(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace tabella::inbox
