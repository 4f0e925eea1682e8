# TENSORLINT_COMPILER_LAUNCHER: the compiler cache with our settings, or nothing where there is none.
#
# Equal objects for equal sources, whichever folder a checkout lies in: paths below it are relative (BASEDIR). Without the sloppiness none that read
# precompiled headers. DEPEND: equal sources to the letter. Text without comments is not enough for a precompiled header: g++ tells a file of
# `#pragma once` by its checksum, and would include it a second time. NAMESPACE: what was kept otherwise is not found.
find_program(CCACHE_PROGRAM ccache)
set(TENSORLINT_COMPILER_LAUNCHER)
if(CCACHE_PROGRAM)
  get_filename_component(compiler_cache_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
  set(TENSORLINT_COMPILER_LAUNCHER env CCACHE_BASEDIR=${compiler_cache_root} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_DEPEND=1 CCACHE_NAMESPACE=exact ${CCACHE_PROGRAM})
endif()
