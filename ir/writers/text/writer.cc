#include "ir/writers/text/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/text/lexer.h"
#include "ir/text/words.h"

namespace tensorlint {
namespace {

using text::Lexer;
using text::Token;
using text::TokenKind;

/// Bytes [begin, end) of the file.
struct Span {
  std::size_t begin = 0, end = 0;
};

struct AttributeText {
  std::string name;
  Span span;  ///< name, kind and value
};

/// Where the parts of a node stand.
struct NodeText {
  Span span;
  std::size_t behind_operator = 0;
  std::vector<Span> results;     ///< an absent one has no length
  std::vector<Span> operands;    ///< an absent one has no length
  std::size_t operands_end = 0;  ///< the closing bracket
  std::vector<AttributeText> attributes;
  std::optional<std::size_t> attributes_end;  ///< the closing bracket, where there is an opening one
};

/// One entry between the angle brackets of a graph.
struct DeclarationText {
  std::string name;
  bool has_value = false;
  Span span;
};

/// Where the parts of a graph stand.
struct GraphText {
  std::vector<DeclarationText> declarations;
  std::optional<std::size_t> declarations_end;  ///< the closing bracket, where there is an opening one
  std::size_t nodes_begin = 0;                  ///< the opening brace
};

std::string attribute_text(const NewAttribute& attribute) {
  const std::string name = text::plain_word(attribute.name);
  switch (attribute.kind) {
    case AttributeKind::kFloat:
      return fmt::format("{} = {}", name, text::float_word(attribute.f));
    case AttributeKind::kString:
      return fmt::format("{} = {}", name, text::quoted(attribute.s));
    case AttributeKind::kInts:
      return fmt::format("{}: ints = [{}]", name, fmt::join(attribute.ints, ", "));
    default:
      return fmt::format("{} = {}", name, attribute.i);
  }
}

std::string names_text(std::span<const std::string> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += ", ";
    if (!names[i].empty()) list += text::value_word(names[i]);
  }
  // A last name that is absent needs a comma behind it.
  if (!names.empty() && names.back().empty()) list += ",";
  return list;
}

std::string node_text(const NewNode& node) {
  std::string line;
  if (!node.name.empty()) line += fmt::format("[{}] ", text::value_word(node.name));
  line += names_text(node.results) + " = ";
  if (!node.domain.empty()) line += text::domain_word(node.domain) + ".";
  line += text::plain_word(node.op);
  if (!node.attributes.empty()) {
    std::vector<std::string> attributes;
    for (const NewAttribute& attribute : node.attributes) attributes.push_back(attribute_text(attribute));
    line += fmt::format(" <{}>", fmt::join(attributes, ", "));
  }
  return fmt::format("{} ({})", line, names_text(node.operands));
}

std::string declaration_text(const AddInitializer& tensor) {
  const std::string type = tensor.dims.empty() ? "int64" : fmt::format("int64[{}]", fmt::join(tensor.dims, ", "));
  return fmt::format("{} {} = {{{}}}", type, text::value_word(tensor.name), fmt::join(tensor.elements, ", "));
}

class TextEditor {
 public:
  TextEditor(std::string_view file, const Model& model) : file_(file), model_(model) {}

  std::optional<Error> add(const GraphEdit& edit) {
    return std::visit([this](const auto& one) { return plan(one); }, edit);
  }

  Result<EditedBytes> run() {
    if (auto error = finish()) return *std::move(error);
    std::ranges::stable_sort(splices_, [](const Splice& a, const Splice& b) {
      return std::pair(a.span.begin, a.span.end) < std::pair(b.span.begin, b.span.end);
    });
    EditedBytes out;
    std::size_t kept = 0;
    for (Splice& splice : splices_) {
      if (splice.text.empty() && splice.span.end <= kept) continue;  // gone with what is around it
      if (splice.span.begin < kept || splice.span.end > file_.size())
        return Error{"two edits change the same place of the text", {}};
      out.keep(file_.substr(kept, splice.span.begin - kept));
      out.add(std::move(splice.text));
      kept = splice.span.end;
    }
    out.keep(file_.substr(kept));
    return out;
  }

 private:
  struct Splice {
    Span span;
    std::string text;
  };

  static Error lost() { return Error{"the text is not what the model was read from", {}}; }

  // ---- where things stand

  std::size_t end_of(const Token& token) const {
    return static_cast<std::size_t>(token.text.data() - file_.data()) + token.text.size() +
           (token.kind == TokenKind::kString ? 1 : 0);
  }

  static bool is_name(const Token& token) {
    return token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kString;
  }

  static std::string name_of(const Token& token) {
    return token.escaped ? text::unescaped(token.text) : std::string(token.text);
  }

  /// Steps over one token, or over a bracket with all that it holds; the end of it. nullopt at the end of the text.
  std::optional<std::size_t> skip(Lexer& lexer) const {
    int depth = 0;
    while (true) {
      const Token token = lexer.take();
      if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kBad) return std::nullopt;
      if (token.is('(') || token.is('[') || token.is('{') || token.is('<')) ++depth;
      if (token.is(')') || token.is(']') || token.is('}') || token.is('>')) --depth;
      if (depth <= 0) return end_of(token);
    }
  }

  Lexer at(const Position& position) const {
    Lexer lexer(file_);
    lexer.seek(position);
    return lexer;
  }

  std::optional<NodeText> find(NodeId id) const {
    const Node& node = model_.node(id);
    if (node.position.offset >= file_.size()) return std::nullopt;
    Lexer lexer = at(node.position);
    NodeText found;
    found.span.begin = node.position.offset;
    if (lexer.peek().is('[') && !skip(lexer)) return std::nullopt;
    for (bool named = false, more = true; more;) {
      const Token token = lexer.take();
      if (token.kind == TokenKind::kEnd) return std::nullopt;
      more = !token.is('=');
      if (is_name(token))
        found.results.push_back({token.position.offset, end_of(token)});
      else if (!named)
        found.results.push_back({token.position.offset, token.position.offset});
      named = is_name(token);
    }
    for (bool more = true; more;) {
      const Token name = lexer.take();
      if (!is_name(name)) return std::nullopt;
      found.behind_operator = end_of(name);
      more = lexer.accept('.') || lexer.accept(':');
    }
    if (!find_attributes(lexer, found) || !lexer.accept('(')) return std::nullopt;
    bool open = true;  // a place for an operand, not filled yet
    while (true) {
      const Token token = lexer.take();
      if (token.kind == TokenKind::kEnd) return std::nullopt;
      const bool last = token.is(')');
      if (is_name(token)) {
        found.operands.push_back({token.position.offset, end_of(token)});
        open = false;
      } else if (token.is(',') || (last && open && found.operands.size() < node.operand_count)) {
        if (open) found.operands.push_back({token.position.offset, token.position.offset});
        open = true;
      }
      if (last) {
        found.operands_end = token.position.offset;
        found.span.end = end_of(token);
        break;
      }
    }
    if (found.operands.size() < node.operand_count) return std::nullopt;
    if (found.attributes.empty() && lexer.peek().is('<') && !find_attributes(lexer, found)) return std::nullopt;
    if (found.attributes_end) found.span.end = std::max(found.span.end, *found.attributes_end + 1);
    return found;
  }

  bool find_attributes(Lexer& lexer, NodeText& found) const {
    if (!lexer.accept('<')) return true;
    while (!lexer.peek().is('>')) {
      const Token name = lexer.take();
      if (!is_name(name)) return false;
      AttributeText attribute{.name = name_of(name), .span = {name.position.offset, end_of(name)}};
      while (!lexer.peek().is(',') && !lexer.peek().is('>')) {
        const auto end = skip(lexer);
        if (!end) return false;
        attribute.span.end = *end;
      }
      found.attributes.push_back(std::move(attribute));
      lexer.accept(',');
    }
    found.attributes_end = lexer.take().position.offset;
    return true;
  }

  std::optional<GraphText> find(GraphId id) const {
    const Graph& graph = model_.graph(id);
    if (graph.position.offset >= file_.size()) return std::nullopt;
    Lexer lexer = at(graph.position);
    GraphText found;
    lexer.advance();                                                // the name
    if (lexer.peek().is('<') && !skip(lexer)) return std::nullopt;  // a function's attributes
    if (lexer.peek().is('(') && !skip(lexer)) return std::nullopt;
    if (lexer.take().kind != TokenKind::kArrow) return std::nullopt;
    if (lexer.peek().is('(') && !skip(lexer)) return std::nullopt;
    if (lexer.accept('<')) {
      while (!lexer.peek().is('>')) {
        DeclarationText declaration{.name = {}, .has_value = false, .span = {lexer.peek().position.offset, 0}};
        while (!lexer.peek().is(',') && !lexer.peek().is('>')) {
          const Token token = lexer.peek();
          declaration.has_value = declaration.has_value || token.is('=');
          if (is_name(token) && !declaration.has_value) declaration.name = name_of(token);
          const auto end = skip(lexer);
          if (!end) return std::nullopt;
          declaration.span.end = *end;
        }
        found.declarations.push_back(std::move(declaration));
        lexer.accept(',');
      }
      found.declarations_end = lexer.take().position.offset;
    }
    if (!lexer.peek().is('{')) return std::nullopt;
    found.nodes_begin = lexer.peek().position.offset;
    return found;
  }

  std::size_t line_begin(std::size_t at) const {
    if (at == 0) return 0;
    const std::size_t newline = file_.rfind('\n', at - 1);
    return newline == std::string_view::npos ? 0 : newline + 1;
  }

  /// Behind the line break, or the end of the text.
  std::size_t line_end(std::size_t at) const {
    const std::size_t newline = file_.find('\n', at);
    return newline == std::string_view::npos ? file_.size() : newline + 1;
  }

  /// Only blanks from the beginning of the line on.
  bool begins_line(std::size_t at) const {
    return file_.substr(line_begin(at), at - line_begin(at)).find_first_not_of(" \t") == std::string_view::npos;
  }

  /// Only blanks, perhaps a comment, up to the end of the line.
  bool ends_line(std::size_t at) const {
    const std::size_t next = file_.find_first_not_of(" \t\r", at);
    return next == std::string_view::npos || file_[next] == '\n' || file_[next] == '#';
  }

  /// How the file ends its lines.
  std::string_view line_break() const {
    const std::size_t newline = file_.find('\n');
    return newline != std::string_view::npos && newline > 0 && file_[newline - 1] == '\r' ? "\r\n" : "\n";
  }

  std::string_view indentation(std::size_t at) const { return file_.substr(line_begin(at), at - line_begin(at)); }

  // ---- edits

  /// A line of its own above the node and the comments that stand right above it; else right before it.
  void insert_before(const NodeText& next, std::string_view node, std::string_view comment) {
    if (!begins_line(next.span.begin)) {
      splices_.push_back({{next.span.begin, next.span.begin}, fmt::format("{} ", node)});
      return;
    }
    std::size_t line = line_begin(next.span.begin);
    while (line > 0) {
      const std::size_t above = line_begin(line - 1);
      const std::size_t first = file_.find_first_not_of(" \t", above);
      if (first >= line || file_[first] != '#') break;
      line = above;
    }
    splices_.push_back(
        {{line, line}, fmt::format("{}{}{}{}", indentation(next.span.begin), node, comment, line_break())});
  }

  /// Behind all nodes of a graph, on a line of its own where the last one ends a line.
  std::optional<Error> append(const Graph& graph, std::string_view code, std::string_view comment) {
    if (graph.node_count == 0) return Error{"a graph of a model in text without nodes takes none", {}};
    const auto last = find(static_cast<NodeId>(graph.first_node + graph.node_count - 1));
    if (!last) return lost();
    if (begins_line(last->span.begin) && ends_line(last->span.end)) {
      const std::size_t end = line_end(last->span.end);
      const bool broken = end > 0 && file_[end - 1] == '\n';
      splices_.push_back({{end, end},
                          fmt::format("{}{}{}{}{}", broken ? "" : line_break(), indentation(last->span.begin), code,
                                      comment, line_break())});
    } else {
      splices_.push_back({{last->span.end, last->span.end}, fmt::format(" {}", code)});
    }
    return std::nullopt;
  }

  std::optional<Error> plan(const InsertNode& insert) {
    if (insert.before == NodeId::kNone) return append(model_.graph(insert.graph), node_text(insert.node), {});
    const auto next = find(insert.before);
    if (!next) return lost();
    insert_before(*next, node_text(insert.node), {});
    return std::nullopt;
  }

  std::optional<Error> plan(const SetOperand& set) {
    const auto node = find(set.node);
    if (!node) return lost();
    if (set.index < model_.node(set.node).operand_count) {
      splices_.push_back({node->operands[set.index], text::value_word(set.value)});
      return std::nullopt;
    }
    auto& grown = grown_[set.node];
    if (!grown.emplace(set.index, set.value).second)
      return Error{fmt::format("operand {} of `{}` is added twice", set.index, model_.label(set.node)), {}};
    return std::nullopt;
  }

  std::optional<Error> plan(const SetResult& set) {
    const auto node = find(set.node);
    if (!node || set.index >= node->results.size()) return lost();
    splices_.push_back({node->results[set.index], text::value_word(set.value)});
    return std::nullopt;
  }

  std::optional<Error> plan(const AddMetadata& /*entry*/) {
    return Error{"nodes and constants of a model in text have no metadata", {}};
  }

  std::optional<Error> plan(const SetAttribute& set) {
    const auto node = find(set.node);
    if (!node) return lost();
    const auto known = std::ranges::find(node->attributes, set.attribute.name, &AttributeText::name);
    if (known != node->attributes.end())
      splices_.push_back({known->span, attribute_text(set.attribute)});
    else
      new_attributes_[set.node].push_back(attribute_text(set.attribute));
    return std::nullopt;
  }

  std::optional<Error> plan(const AddInitializer& tensor) {
    if (model_.graph(tensor.graph).kind == GraphKind::kFunction)
      return Error{fmt::format("function `{}` cannot hold an initializer", model_.graph_path(tensor.graph)), {}};
    graphs_[tensor.graph].added.push_back(declaration_text(tensor));
    return std::nullopt;
  }

  std::optional<Error> plan(const DropValueInfo& drop) {
    graphs_[drop.graph].dropped.emplace(drop.value, false);
    return std::nullopt;
  }

  std::optional<Error> plan(const RemoveInitializer& removal) {
    const Value& value = model_.value(removal.value);
    if (value.initializer == nullptr)
      return Error{fmt::format("`{}` is no constant of a graph", model_.name_of(removal.value)), {}};
    graphs_[value.graph].dropped.emplace(std::string(model_.name_of(removal.value)), true);
    return std::nullopt;
  }

  std::optional<Error> plan(const ImportDomain& import) {
    GraphId owner = import.graph;
    while (model_.graph(owner).kind == GraphKind::kSubgraph) owner = model_.graph(owner).parent;
    const std::uint32_t list = model_.graph(owner).opsets;
    const auto& imports = model_.opset_imports[list];
    if (std::ranges::any_of(imports, [&](const OpsetImport& one) { return model_.text(one.domain) == import.domain; }))
      return std::nullopt;
    if (list != 0)
      return Error{
          fmt::format("cannot import a domain into function `{}` of a model in text", model_.graph_path(owner)), {}};
    if (!imported_.insert(import.domain).second) return std::nullopt;
    return into_header("opset_import", fmt::format("{} : {}", text::quoted(import.domain), import.version));
  }

  std::optional<Error> plan(const AddModelMetadata& entry) {
    return into_header("metadata_props", fmt::format("{}: {}", text::quoted(entry.key), text::quoted(entry.value)));
  }

  std::optional<Error> plan(const RemoveNode& removal) {
    const auto node = find(removal.node);
    if (!node) return lost();
    take_away(node->span);
    return std::nullopt;
  }

  void take_away(const Span& span) {
    if (begins_line(span.begin) && ends_line(span.end)) {
      splices_.push_back({{line_begin(span.begin), line_end(span.end)}, {}});
      return;
    }
    std::size_t end = span.end;
    while (end < file_.size() && file_[end] == ' ') ++end;
    splices_.push_back({{span.begin, end}, {}});
  }

  std::optional<Error> plan(const MoveNode& move) {
    const auto node = find(move.node);
    if (!node) return lost();
    const std::string_view code = file_.substr(node->span.begin, node->span.end - node->span.begin);
    std::string_view comment;
    if (begins_line(node->span.begin) && ends_line(node->span.end)) {
      comment = file_.substr(node->span.end, line_end(node->span.end) - node->span.end);
      while (!comment.empty() && (comment.back() == '\n' || comment.back() == '\r')) comment.remove_suffix(1);
    }
    take_away(node->span);
    if (move.before != NodeId::kNone) {
      const auto next = find(move.before);
      if (!next) return lost();
      insert_before(*next, code, comment);
      return std::nullopt;
    }
    return append(model_.graph(model_.node(move.node).graph), code, comment);
  }

  std::optional<Error> plan(const RemoveComment& removal) {
    for (const Comment& comment : model_.comments) {
      if (comment.line != removal.line) continue;
      const auto found = mark_of(comment);
      if (!found) return lost();
      const std::size_t mark = *found;
      std::size_t end = line_end(mark);
      if (comment.alone) {
        splices_.push_back({{line_begin(mark), end}, {}});
        return std::nullopt;
      }
      while (end > mark && (file_[end - 1] == '\n' || file_[end - 1] == '\r')) --end;
      std::size_t from = mark;
      while (from > 0 && (file_[from - 1] == ' ' || file_[from - 1] == '\t')) --from;
      splices_.push_back({{from, end}, {}});
      return std::nullopt;
    }
    return Error{fmt::format("there is no comment on line {}", removal.line), {}};
  }

  /// Where the comment's mark stands. Its line may have others, inside strings.
  std::optional<std::size_t> mark_of(const Comment& comment) const {
    std::size_t begin = 0;
    for (std::uint32_t line = 1; line < comment.line; ++line) begin = line_end(begin);
    std::size_t end = line_end(begin);
    while (end > begin && std::string_view(" \t\r\n").find(file_[end - 1]) != std::string_view::npos) --end;
    if (end < begin + comment.text.size() ||
        file_.substr(end - comment.text.size(), comment.text.size()) != comment.text)
      return std::nullopt;
    std::size_t mark = end - comment.text.size();
    while (mark > begin && (file_[mark - 1] == ' ' || file_[mark - 1] == '\t')) --mark;
    if (mark == begin || file_[mark - 1] != '#') return std::nullopt;
    return mark - 1;
  }

  /// An item more in a list of the header, which has to be there.
  std::optional<Error> into_header(std::string_view field, std::string item) {
    Lexer lexer(file_);
    if (!lexer.accept('<')) return Error{fmt::format("the model has no header to put `{}` into", field), {}};
    while (!lexer.peek().is('>')) {
      const Token key = lexer.take();
      if (key.kind == TokenKind::kEnd || !lexer.accept(':')) return lost();
      const Token value = lexer.peek();
      const auto end = skip(lexer);
      if (!end) return lost();
      if (key.text == field && value.is('[')) {
        const bool empty =
            file_.substr(value.position.offset + 1, *end - value.position.offset - 2).find_first_not_of(" \t\r\n") ==
            std::string_view::npos;
        std::string& added = header_[*end - 1];
        added += (empty && added.empty() ? "" : ", ") + std::move(item);
        return std::nullopt;
      }
      lexer.accept(',');
    }
    const std::size_t close = lexer.peek().position.offset;
    std::string& list = new_fields_[std::string(field)];
    new_fields_at_ = close;
    list += (list.empty() ? "" : ", ") + std::move(item);
    return std::nullopt;
  }

  /// What several edits say of one place, as one splice.
  std::optional<Error> finish() {
    for (auto& [at, items] : header_) splices_.push_back({{at, at}, std::move(items)});
    std::string fields;
    for (const auto& [field, items] : new_fields_) fields += fmt::format(", {}: [{}]", field, items);
    if (!fields.empty()) splices_.push_back({{new_fields_at_, new_fields_at_}, std::move(fields)});

    for (const auto& [id, operands] : grown_) {
      const auto node = find(id);
      if (!node) return lost();
      std::vector<std::string> added;
      std::uint32_t next = model_.node(id).operand_count;
      for (const auto& [index, value] : operands) {
        for (; next < index; ++next) added.emplace_back();
        added.push_back(value);
        ++next;
      }
      // A comma that ends the list already stands for none.
      const bool comma = model_.node(id).operand_count > 0;
      const std::size_t last = comma ? node->operands.back().end : node->operands_end;
      const std::string list = names_text(added);
      splices_.push_back({{last, node->operands_end}, comma ? ", " + list : list});
    }
    for (const auto& [id, attributes] : new_attributes_) {
      const auto node = find(id);
      if (!node) return lost();
      const std::string list = fmt::format("{}", fmt::join(attributes, ", "));
      if (node->attributes_end)
        splices_.push_back(
            {{*node->attributes_end, *node->attributes_end}, (node->attributes.empty() ? "" : ", ") + list});
      else
        splices_.push_back({{node->behind_operator, node->behind_operator}, fmt::format(" <{}>", list)});
    }
    for (const auto& [id, changes] : graphs_)
      if (auto error = finish_graph(id, changes.added, changes.dropped)) return error;
    return std::nullopt;
  }

  std::optional<Error> finish_graph(GraphId id, const std::vector<std::string>& added,
                                    const std::set<std::pair<std::string, bool>>& dropped) {
    const auto graph = find(id);
    if (!graph) return lost();
    const auto& all = graph->declarations;
    const auto goes = [&](const DeclarationText& declaration) {
      return dropped.contains({declaration.name, declaration.has_value});
    };
    std::size_t kept = 0;
    std::size_t kept_end = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!goes(all[i])) {
        ++kept;
        kept_end = all[i].span.end;
        continue;
      }
      // Up to the next one that stays; where none follows, from the last one that stays.
      std::size_t next = i;
      while (next < all.size() && goes(all[next])) ++next;
      if (next < all.size())
        splices_.push_back({{all[i].span.begin, all[next].span.begin}, {}});
      else
        splices_.push_back({{kept > 0 ? kept_end : all[i].span.begin, all.back().span.end}, {}});
      i = next - 1;
    }
    if (added.empty()) return std::nullopt;
    const std::string list = fmt::format("{}", fmt::join(added, ", "));
    if (graph->declarations_end)
      splices_.push_back({{*graph->declarations_end, *graph->declarations_end}, (kept > 0 ? ", " : "") + list});
    else
      splices_.push_back({{graph->nodes_begin, graph->nodes_begin}, fmt::format("<{}>\n", list)});
    return std::nullopt;
  }

  struct GraphChanges {
    std::vector<std::string> added;
    std::set<std::pair<std::string, bool>> dropped;  ///< name, and whether it is a constant
  };

  std::string_view file_;
  const Model& model_;
  std::vector<Splice> splices_;
  std::map<NodeId, std::map<std::uint32_t, std::string>> grown_;
  std::map<NodeId, std::vector<std::string>> new_attributes_;
  std::map<GraphId, GraphChanges> graphs_;
  std::map<std::size_t, std::string> header_;  // by place
  std::map<std::string, std::string> new_fields_;
  std::size_t new_fields_at_ = 0;
  std::set<std::string> imported_;
};

}  // namespace

Result<EditedBytes> edit_onnx_text(std::string_view file, const Model& model, std::span<const GraphEdit> edits) {
  TextEditor editor(file, model);
  for (const GraphEdit& edit : edits)
    if (auto error = editor.add(edit)) return *std::move(error);
  return editor.run();
}

}  // namespace tensorlint
