// Templates of what is sent: Handlebars, as far as Amazon SES documents it and its built-in helpers go:
// {{a.b}},
// {{{a}}}, if, unless, each, with, lookup, {{else}}, {{else if}}, sections, inline partials, @index, @key,
// @first, @last, @root, ../, block parameters, comments, '~'. Not: raw blocks, partial blocks, decorators
// other than inline, helpers of one's own.
//
// As SES does it and handlebars.js does not, a value that is not in the data is an error and not an empty
// text; {{#if}}, {{#unless}}, {{#with}} and sections take it for false. SES escapes nothing, whatever the
// braces
// ("SES doesn't escape HTML content when rendering the HTML template", its guide to advanced personalization
// says).
//
// A parsed template does not change: copies share it, and any thread may render it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace tabella::handlebars {

struct TemplateProgram;

// What was rendered although something was missing.
struct WithGaps {
  std::string text;                  // with [name] for each value that is not in the data
  std::vector<std::string> missing;  // their names, each once
  std::string problem;               // why it ends early; empty: it does not
};

class Template {
 public:
  // In time that grows with the length of the text. Refuses what cannot be read, and blocks that are nested
  // deeper than 64.
  static Checked<Template> parse(std::string_view text);

  // "Attribute 'name' is not present in the rendering data." if it is not. Refuses to write more than `most`
  // bytes, or to take more than a million steps for it: loops within loops over the same list could go on for
  // ever. Whatever takes time is a step: each tag, each name and value that is looked at, and 64 bytes of a
  // long one.
  Checked<std::string> render(JsonValue data, size_t most) const;
  // For what must be sent whatever is missing. In so many steps at most.
  WithGaps render_with_gaps(JsonValue data, size_t most, size_t most_steps = kMostSteps) const;

  static constexpr size_t kMostSteps = 1'000'000;

 private:
  explicit Template(std::shared_ptr<const TemplateProgram> program) : program_(std::move(program)) {}

  std::shared_ptr<const TemplateProgram> program_;
};

}  // namespace tabella::handlebars
