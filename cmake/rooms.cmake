# Most of a file's compile time goes to headers that other files have read before. Precompiled ones are included whether or
# not a file asks for them: tests/house/standard_headers_test.py sees to it that each file does.
#
#   tensorlint_precompile(TARGET [HEADER...])
function(tensorlint_precompile target)
  if(TENSORLINT_PRECOMPILED_HEADERS)
    # In quotes they stay relative, so that two checkouts precompile the same text and share objects in a compiler cache.
    list(TRANSFORM ARGN REPLACE "^([^<].*)" "\"\\1\"")
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <cstddef> <cstdint> <functional> <limits> <map> <memory> <optional> <set> <span> <string> <string_view>
                              <utility> <vector> <fmt/format.h> ${ARGN})
  endif()
endfunction()

# Most of the time that is left goes to templates of the standard library, which files that are compiled together instantiate
# once. Fewer functions are inlined in large units: inference, the graph and the reader, with which `check` took more instructions, are
# compiled file by file.
#
#   tensorlint_compile_together(TARGET)
function(tensorlint_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TENSORLINT_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# A room is a folder that holds one stage of the way from file to report, a target of its own. It links to the rooms it
# may include from and to no others, so that one stage builds and tests without the later ones;
# tests/house/includes_test.py holds the includes against these links.
#
#   tensorlint_room(NAME SOURCES ... [LINKS ROOM...] [SYSTEM_INCLUDES DIR...] [PRECOMPILED HEADER... | LIKE ROOM] [OPTIONS OPTION...] [OBJECT] [TOGETHER])
#
# OBJECT: parts that register themselves when the program starts are object files, since an archive would drop them.
# PRECOMPILED: headers that most of the room's files include, beside those of the standard library. LIKE: those of another room, without
# compiling them again (100 MB each with g++); base, if neither is given. OPTIONS: of the compiler; precompiled headers are of the same ones.
# TOGETHER: several files are compiled at a time, so that names in anonymous namespaces are unique in the room.
function(tensorlint_room name)
  cmake_parse_arguments(ARG "OBJECT;TOGETHER" "LIKE" "SOURCES;LINKS;SYSTEM_INCLUDES;PRECOMPILED;OPTIONS" ${ARGN})
  if(ARG_OBJECT)
    add_library(tensorlint_${name} OBJECT ${ARG_SOURCES})
  else()
    add_library(tensorlint_${name} STATIC ${ARG_SOURCES})
  endif()
  list(TRANSFORM ARG_LINKS PREPEND tensorlint_)
  target_link_libraries(tensorlint_${name} PUBLIC tensorlint_options fmt::fmt ${ARG_LINKS})
  target_include_directories(tensorlint_${name} SYSTEM PRIVATE ${ARG_SYSTEM_INCLUDES})
  target_compile_options(tensorlint_${name} PRIVATE ${ARG_OPTIONS})
  if(NOT ARG_LIKE AND NOT ARG_PRECOMPILED AND NOT ARG_OPTIONS AND TARGET tensorlint_base AND NOT name STREQUAL base)
    set(ARG_LIKE base)
  endif()
  if(NOT ARG_LIKE)
    tensorlint_precompile(tensorlint_${name} ${ARG_PRECOMPILED})
  elseif(TENSORLINT_PRECOMPILED_HEADERS)
    target_precompile_headers(tensorlint_${name} REUSE_FROM tensorlint_${ARG_LIKE})
  endif()
  if(ARG_TOGETHER)
    tensorlint_compile_together(tensorlint_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY TENSORLINT_ROOMS tensorlint_${name})
endfunction()
