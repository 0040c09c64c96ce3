// A template as it was parsed (handlebars/template.h): read-only from then on, so any thread may render it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tabella::handlebars {

struct TemplateProgram;

// a.b, ../a, this, @index, @../index.
struct TemplatePath {
  std::string text;     // as it stands in the template
  bool data = false;    // begins with '@'
  bool scoped = false;  // begins with this, '.' or '..': never the name of a block's parameter
  size_t up = 0;        // how many '..'
  std::vector<std::string> names;
};

// undefined and null are both nullptr.
using TemplateLiteral = std::variant<std::nullptr_t, bool, std::string>;

// What a tag is about: a path, a literal, or the helper lookup with its two arguments.
struct TemplateExpression {
  std::variant<TemplatePath, TemplateLiteral> what;
  std::vector<TemplateExpression> lookup;  // not empty: (lookup a b), and `what` counts for nothing
};

// The '~' on either side of a tag.
struct TemplateStrip {
  bool open = false;
  bool close = false;
};

struct TemplateNode {
  enum class Kind { text, mustache, block, partial, inline_partial, comment };
  enum class Block { section, inverted, if_, unless, each, with };

  Kind kind = Kind::text;
  std::string text = {};    // of a text, or the name of a partial
  size_t from = 0, to = 0;  // what whitespace control left of a text
  bool left_stripped = false, right_stripped = false;

  TemplateExpression expression = {};  // of a mustache, a block; of a partial: its context
  bool has_expression = false;         // of a partial
  std::vector<std::pair<std::string, TemplateExpression>> hash = {};  // name=value

  Block block = Block::section;
  std::vector<std::string> parameters = {};  // as |item index|
  std::unique_ptr<TemplateProgram> first,
      second;               // of a block, in the order of the template; second: behind else
  std::string indent = {};  // of a partial alone on its line

  TemplateStrip strip = {}, else_strip = {}, close_strip = {};
};

struct TemplateProgram {
  std::vector<TemplateNode> body;
  std::map<std::string, const TemplateProgram*, std::less<>>
      partials;          // defined in it; they belong to nodes of body
  bool chained = false;  // all of it is the block of an {{else if}}
};

Checked<std::unique_ptr<TemplateProgram>> parse_template(std::string_view text);

// Takes out the blanks that handlebars.js takes out: what '~' asks for, and lines with nothing but a block's
// tag.
void control_whitespace(TemplateProgram& program);

}  // namespace tabella::handlebars
