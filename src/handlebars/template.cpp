#include "handlebars/template.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "handlebars/template_tree.h"

namespace tabella::handlebars {
namespace {

constexpr size_t kDeepestRendering = 200;  // of blocks within blocks, through partials that call each other

// A value of the data, a literal or one of a loop's. Nothing: it is not there.
using Json = JsonValue;
using Value = std::variant<std::monostate, std::nullptr_t, bool, size_t, std::string_view, Json>;

// `this`, and what a partial's name=value puts over it. What they point to is on the stack of whoever
// renders.
struct Context {
  Value value;
  const std::vector<std::pair<std::string_view, Value>>* over = nullptr;
  const Context* outer = nullptr;  // ..
};

struct Loop {
  size_t index = 0;
  Value key;
  bool first = false, last = false;
  const Loop* outer = nullptr;
};

struct Parameters {
  const std::vector<std::string>& names;
  Value value, key;
  const Parameters* outer = nullptr;
};

struct Partials {
  const TemplateProgram& program;
  const Partials* outer = nullptr;
};

struct Scope {
  const Context* context = nullptr;
  const Loop* loop = nullptr;
  const Parameters* parameters = nullptr;
  const Partials* partials = nullptr;
  size_t depth = 0;
};

const Json* container_of(const Value& value, Json::Kind kind) {
  const auto* json = std::get_if<Json>(&value);
  return json && json->kind() == kind ? json : nullptr;
}

// A scalar of JSON as what it is: the rest need not know where a value comes from.
Value value_of(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null: return nullptr;
    case Json::Kind::boolean: return json.boolean();
    case Json::Kind::string: return json.string();
    default: return json;
  }
}

bool is_absent(const Value& value) {
  return std::holds_alternative<std::monostate>(value) || std::holds_alternative<std::nullptr_t>(value);
}

bool is_empty_array(const Value& value) {
  const auto* array = container_of(value, Json::Kind::array);
  return array && !JsonElements(*array).next();
}

bool is_zero(const Value& value) {
  if (const auto* number = std::get_if<size_t>(&value)) return *number == 0;
  const auto* json = std::get_if<Json>(&value);
  return json && json->is_number() && json->real() == 0;
}

// JavaScript's, but for zero, which the helpers treat in two ways.
bool is_empty(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return !*boolean;
  if (const auto* text = std::get_if<std::string_view>(&value)) return text->empty();
  return is_absent(value) || is_empty_array(value);
}

// In UTF-16, as JavaScript counts.
size_t length_of(std::string_view text) {
  size_t length = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    length += (byte & 0xc0) == 0x80 ? 0 : byte >= 0xf0 ? 2 : 1;
  }
  return length;
}

// In steps: looking at a text as long as a template, or its data, is no single one.
size_t cost_of(std::string_view text) { return 1 + text.size() / 64; }

// One rendering. Its output, and the steps it has taken, count against limits that hold for all of it: once
// one is reached, or a value is missing where none may be, error_ is set and everything returns.
class Renderer {
 public:
  // With `missing`, what is not in the data is named there, and shown as such.
  Renderer(Json data, size_t most, size_t most_steps, std::vector<std::string>* missing = nullptr)
      : root_(data), most_(most), most_steps_(most_steps), missing_(missing) {}

  Checked<std::string> render(const TemplateProgram& program) {
    const Context context{.value = value_of(root_)};
    run(program, {.context = &context});
    if (error_) return std::unexpected(std::move(*error_));
    return std::move(out_);
  }
  // What was written, whether or not it came to its end.
  std::string take() { return std::move(out_); }

 private:
  bool failed() const { return error_.has_value(); }
  void fail(std::string message) {
    if (!error_) error_ = Invalid{std::move(message)};
  }
  void step(size_t cost = 1) {
    steps_ += cost;
    if (steps_ > most_steps_) fail("The template takes too many steps to render.");
  }

  void run(const TemplateProgram& program, Scope scope) {
    if (++scope.depth > kDeepestRendering)
      return fail("The template's blocks and partials are nested too deep.");
    const Partials partials{program, scope.partials};
    if (!program.partials.empty()) scope.partials = &partials;
    for (const auto& node : program.body) {
      step();
      if (failed()) return;
      switch (node.kind) {
        case TemplateNode::Kind::text:
          write(std::string_view(node.text).substr(node.from, node.to - node.from));
          break;
        case TemplateNode::Kind::mustache: show(node, scope); break;
        case TemplateNode::Kind::block: run_block(node, scope); break;
        case TemplateNode::Kind::partial: run_partial(node, scope); break;
        case TemplateNode::Kind::inline_partial:
        case TemplateNode::Kind::comment: break;
      }
    }
  }

  void write(std::string_view text) {
    if (out_.size() + text.size() > most_)
      return fail(fmt::format("The rendered template is longer than {} bytes.", most_));
    out_.append(text);
  }

  void write_value(const Value& value) {
    if (const auto* boolean = std::get_if<bool>(&value)) return write(*boolean ? "true" : "false");
    if (const auto* number = std::get_if<size_t>(&value)) return write(std::to_string(*number));
    if (const auto* text = std::get_if<std::string_view>(&value)) return write(*text);
    const auto* json = std::get_if<Json>(&value);
    if (!json) return;
    if (json->is_number()) return write(json->number_text());
    if (json->is_object()) return write("[object Object]");
    bool first = true;
    for (JsonElements elements(*json); !failed() && elements.next(); first = false) {
      step();
      if (!first) write(",");
      write_value(value_of(elements.value()));
    }
  }

  void show(const TemplateNode& node, const Scope& scope) {
    const auto value = evaluate(node.expression, scope);
    if (std::holds_alternative<std::monostate>(value)) return missing(node.expression);
    write_value(value);
  }

  void missing(const TemplateExpression& expression) {
    const auto* path = std::get_if<TemplatePath>(&expression.what);
    const std::string_view name = !expression.lookup.empty() ? "lookup"
                                  : path                     ? std::string_view(path->text)
                                                             : "";
    if (!missing_) return fail(fmt::format("Attribute '{}' is not present in the rendering data.", name));
    if (std::ranges::find(*missing_, name) == missing_->end()) missing_->emplace_back(name);
    write(fmt::format("[{}]", name));
  }

  Value evaluate(const TemplateExpression& expression, const Scope& scope) {
    step();
    if (failed()) return {};
    if (!expression.lookup.empty()) {
      const auto container = evaluate(expression.lookup[0], scope);
      return member(container, name_of(evaluate(expression.lookup[1], scope)));
    }
    if (const auto* path = std::get_if<TemplatePath>(&expression.what)) return find(*path, scope);
    return std::visit(
        [](const auto& literal) -> Value {
          if constexpr (std::is_same_v<std::decay_t<decltype(literal)>, std::string>)
            return std::string_view(literal);
          else
            return literal;
        },
        std::get<TemplateLiteral>(expression.what));
  }

  // What lookup looks for.
  static std::string name_of(const Value& value) {
    if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(*text);
    if (const auto* number = std::get_if<size_t>(&value)) return std::to_string(*number);
    if (const auto* json = std::get_if<Json>(&value); json && json->is_number()) return json->number_text();
    return "";
  }

  Value find(const TemplatePath& path, const Scope& scope) {
    if (path.data) return find_data(path, scope);
    size_t name = 0;
    Value value;
    if (const auto* parameter =
            path.scoped || path.names.empty() ? nullptr : find_parameter(path.names[0], scope)) {
      value = *parameter;
      name = 1;
    } else {
      const auto* context = scope.context;
      for (size_t up = 0; up < path.up && context; ++up) context = context->outer;
      if (!context) return {};
      value = context->value;
      if (const auto* over = path.names.empty() ? nullptr : find_over(path.names[0], *context)) {
        value = *over;
        name = 1;
      }
    }
    for (; name < path.names.size() && !failed(); ++name) value = member(value, path.names[name]);
    return value;
  }

  const Value* find_over(std::string_view name, const Context& context) {
    if (!context.over) return nullptr;
    for (const auto& [given, value] : *context.over) {
      step(cost_of(name));
      if (failed()) return nullptr;
      if (given == name) return &value;
    }
    return nullptr;
  }

  const Value* find_parameter(std::string_view name, const Scope& scope) {
    for (const auto* parameters = scope.parameters; parameters; parameters = parameters->outer) {
      step(cost_of(name));
      if (parameters->names[0] == name) return &parameters->value;
      if (parameters->names.size() > 1 && parameters->names[1] == name) return &parameters->key;
    }
    return nullptr;
  }

  Value find_data(const TemplatePath& path, const Scope& scope) {
    if (path.names.empty()) return {};
    const auto& name = path.names[0];
    Value value;
    const auto* loop = scope.loop;
    for (size_t up = 0; up < path.up && loop; ++up) loop = loop->outer;
    if (name == "root")
      value = value_of(root_);
    else if (!loop)
      return {};
    else if (name == "index")
      value = loop->index;
    else if (name == "key")
      value = loop->key;
    else if (name == "first")
      value = loop->first;
    else if (name == "last")
      value = loop->last;
    for (size_t i = 1; i < path.names.size() && !failed(); ++i) value = member(value, path.names[i]);
    return value;
  }

  // Each name that is passed over is a step: looking for the last one of many, again and again, takes its
  // time.
  Value member(const Value& container, std::string_view name) {
    const auto cost = cost_of(name);
    step(cost);
    if (const auto* text = std::get_if<std::string_view>(&container); text && name == "length") {
      step(cost_of(*text));
      return length_of(*text);
    }
    if (const auto* object = container_of(container, Json::Kind::object)) {
      for (JsonElements members(*object); !failed() && members.next(); step(cost))
        if (members.key() == name) return value_of(members.value());
      return {};
    }
    const auto* array = container_of(container, Json::Kind::array);
    if (!array) return {};
    size_t wanted = 0;
    const bool length = name == "length";
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), wanted);
    if (!length && (error != std::errc{} || end != name.data() + name.size())) return {};
    size_t index = 0;
    for (JsonElements elements(*array); !failed() && elements.next(); step())
      if (index++ == wanted && !length) return value_of(elements.value());
    return length ? Value(index) : Value();
  }

  void run_block(const TemplateNode& node, const Scope& scope) {
    const auto value = evaluate(node.expression, scope);
    switch (node.block) {
      case TemplateNode::Block::if_: return run_either(node, is_true(node, value, scope), scope);
      case TemplateNode::Block::unless: return run_either(node, !is_true(node, value, scope), scope);
      case TemplateNode::Block::each:
        if (std::holds_alternative<std::monostate>(value)) return missing(node.expression);
        return run_each(node, value, scope);
      case TemplateNode::Block::with:
        return is_empty(value) ? run_either(node, false, scope) : run_within(node, value, scope);
      case TemplateNode::Block::inverted: return run_either(node, is_false_section(value), scope);
      case TemplateNode::Block::section: return run_section(node, value, scope);
    }
  }

  bool is_true(const TemplateNode& node, const Value& value, const Scope& scope) {
    if (!is_zero(value)) return !is_empty(value);
    return std::ranges::any_of(node.hash, [&](const auto& pair) {
      step();
      return failed() || (pair.first == "includeZero" && !is_empty(evaluate(pair.second, scope)));
    });
  }

  static bool is_false_section(const Value& value) {
    const auto* boolean = std::get_if<bool>(&value);
    return is_absent(value) || is_empty_array(value) || (boolean && !*boolean);
  }

  void run_section(const TemplateNode& node, const Value& value, const Scope& scope) {
    if (is_false_section(value) || std::holds_alternative<bool>(value))
      return run_either(node, !is_false_section(value), scope);
    if (container_of(value, Json::Kind::array)) return run_each(node, value, scope);
    run_within(node, value, scope);
  }

  void run_either(const TemplateNode& node, bool first, const Scope& scope) {
    if (first)
      run(*node.first, scope);
    else if (node.second)
      run(*node.second, scope);
  }

  void run_within(const TemplateNode& node, const Value& value, Scope scope) {
    // {{#with this}} is no deeper than what is around it.
    const auto* path = std::get_if<TemplatePath>(&node.expression.what);
    const bool same =
        path && node.expression.lookup.empty() && path->scoped && path->up == 0 && path->names.empty();
    const Context context{.value = value, .outer = same ? scope.context->outer : scope.context};
    const Parameters parameters{.names = node.parameters, .value = value, .outer = scope.parameters};
    scope.context = &context;
    if (!node.parameters.empty()) scope.parameters = &parameters;
    run(*node.first, scope);
  }

  // Of an array or an object. All else has no elements.
  void run_each(const TemplateNode& node, const Value& value, const Scope& scope) {
    const auto* object = container_of(value, Json::Kind::object);
    const auto* container = object ? object : container_of(value, Json::Kind::array);
    if (!container) return run_either(node, false, scope);
    JsonElements elements(*container);
    bool more = elements.next();
    if (!more) return run_either(node, false, scope);
    for (size_t index = 0; more && !failed(); ++index) {
      step();
      const auto element = value_of(elements.value());
      const Value key = object ? Value(elements.key()) : Value(index);
      more = elements.next();
      const Loop loop{.index = index, .key = key, .first = index == 0, .last = !more, .outer = scope.loop};
      const Context context{.value = element, .outer = scope.context};
      const Parameters parameters{node.parameters, element, key, scope.parameters};
      Scope inner = scope;
      inner.loop = &loop;
      inner.context = &context;
      if (!node.parameters.empty()) inner.parameters = &parameters;
      run(*node.first, inner);
    }
  }

  const TemplateProgram* find_partial(std::string_view name, const Scope& scope) {
    for (const auto* partials = scope.partials; partials; partials = partials->outer) {
      step(cost_of(name));
      if (const auto found = partials->program.partials.find(name); found != partials->program.partials.end())
        return found->second;
    }
    return nullptr;
  }

  void run_partial(const TemplateNode& node, Scope scope) {
    const auto* partial = find_partial(node.text, scope);
    if (!partial) return fail(fmt::format("The partial {} could not be found.", node.text));
    std::vector<std::pair<std::string_view, Value>> over;
    for (const auto& [name, expression] : node.hash) {
      if (failed()) return;
      over.emplace_back(name, evaluate(expression, scope));
    }
    Context context{.value = scope.context->value, .over = scope.context->over, .outer = scope.context};
    if (node.has_expression) context = {.value = evaluate(node.expression, scope), .outer = scope.context};
    if (!over.empty()) context.over = &over;
    if (node.has_expression || !over.empty()) scope.context = &context;
    const auto begin = out_.size();
    run(*partial, scope);
    if (!node.indent.empty() && !failed()) indent(begin, node.indent);
  }

  // Each line that has been written since `begin`; not the nothing behind the last line end.
  void indent(size_t begin, std::string_view blanks) {
    const auto written = out_.substr(begin);
    out_.resize(begin);
    for (std::string_view left = written; !left.empty() && !failed();) {
      const auto line = left.substr(0, std::min(left.find('\n'), left.size() - 1) + 1);
      step(cost_of(line));
      write(blanks);
      write(line);
      left.remove_prefix(line.size());
    }
  }

  const Json root_;
  const size_t most_;
  const size_t most_steps_;
  std::vector<std::string>* const missing_;
  std::string out_;
  size_t steps_ = 0;
  std::optional<Invalid> error_;
};

}  // namespace

Checked<Template> Template::parse(std::string_view text) {
  TABELLA_ASSIGN(auto program, parse_template(text));
  control_whitespace(*program);
  return Template(std::shared_ptr<const TemplateProgram>(std::move(program)));
}

Checked<std::string> Template::render(JsonValue data, size_t most) const {
  return Renderer(data, most, kMostSteps).render(*program_);
}

WithGaps Template::render_with_gaps(JsonValue data, size_t most, size_t most_steps) const {
  WithGaps result;
  Renderer renderer(data, most, most_steps, &result.missing);
  auto rendered = renderer.render(*program_);
  if (!rendered) result.problem = std::move(rendered.error().message);
  result.text = rendered ? std::move(*rendered) : renderer.take();
  return result;
}

}  // namespace tabella::handlebars
