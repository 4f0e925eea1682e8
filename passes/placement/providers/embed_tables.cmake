# Writes a C++ source with the text of every provider table in TABLES_DIR, by the table's name. cmake -DTABLES_DIR=... -DOUTPUT=... -P
file(GLOB tables RELATIVE ${TABLES_DIR} ${TABLES_DIR}/*.txt)
list(SORT tables)
set(entries "")
foreach(table ${tables})
  file(READ ${TABLES_DIR}/${table} text)
  string(REGEX REPLACE "\\.txt$" "" name ${table})
  # A literal may have 65536 characters at most.
  string(APPEND entries "    {\"${name}\", R\"table(${text})table\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"passes/placement/provider.h\"

namespace tensorlint {
namespace {

struct Table {
  std::string_view name, text;
};

constexpr Table kTables[] = {
${entries}};

}  // namespace

std::shared_ptr<const ProviderTable> built_in_provider(std::string_view name) {
  for (const Table& table : kTables)
    if (table.name == name) return std::make_shared<const ProviderTable>(*parse_provider(table.text, std::string(name)));
  return nullptr;
}

}  // namespace tensorlint
")
