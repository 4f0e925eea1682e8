#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tensorlint::cli {

/// What is wrong with a command line, and what was perhaps meant or where to read about it. `first`: its first word.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error, const std::string& first);
std::string unknown_command(const CLI::App& app, const std::string& word);

}  // namespace tensorlint::cli
