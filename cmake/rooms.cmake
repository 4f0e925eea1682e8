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
# compiled file by file. CMake's own UNITY_BUILD names files by their whole paths, so that a compiler cache shared no unit between checkouts.
#
#   tensorlint_compile_together(TARGET)
#
# Not: what is generated, has options or definitions of its own, or is left out by SKIP_UNITY_BUILD_INCLUSION.
function(tensorlint_compile_together target)
  if(TENSORLINT_UNITY_BUILD)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL tensorlint_write_units ${target})")  # once all properties of its files are set
  endif()
endfunction()

function(tensorlint_write_units target)
  set(files_each 8)
  get_target_property(sources ${target} SOURCES)
  set(together)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${source} is_generated)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(NOT is_generated AND NOT options AND NOT definitions AND NOT alone AND source MATCHES "[.]cc$")
      list(APPEND together ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  set(begin 0)
  while(begin LESS count)
    list(SUBLIST together ${begin} ${files_each} unit)
    set(text "")
    foreach(source IN LISTS unit)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    set(path ${CMAKE_CURRENT_BINARY_DIR}/units/${target}_${begin}.cc)
    file(CONFIGURE OUTPUT ${path} CONTENT "${text}" @ONLY)
    set_source_files_properties(${unit} PROPERTIES HEADER_FILE_ONLY ON)
    target_sources(${target} PRIVATE ${path})
    math(EXPR begin "${begin} + ${files_each}")
  endwhile()
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
