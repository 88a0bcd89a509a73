# Completion of bash for windtunnel; source it, or install it as bash-completion/completions/windtunnel.
# Commands and flags are read from the program's own help, so they are those of the installed version.

# The commands: the indented first words of the list that `windtunnel --help` prints.
_windtunnel_commands() {
  "$1" --help 2>/dev/null | while IFS= read -r line; do
    case $line in
      commands:) listed=1 ;;
      '') [ "${listed:-0}" = 1 ] && break ;;
      '  '[a-z]*) if [ "${listed:-0}" = 1 ]; then line=${line#  }; echo "${line%% *}"; fi ;;
    esac
  done
}

# The flags of a command: words of its manual that begin a line of OPTIONS, as in "-t, --topology FILE".
_windtunnel_flags() {
  "$1" help "$2" 2>/dev/null | while IFS= read -r line; do
    case $line in
      ' '*-*) ;;
      *) continue ;;
    esac
    # Words up to the first one that is neither a flag nor the name of its value in capitals.
    for word in $line; do
      case $word in
        --[a-z]*|-[a-zA-Z]|-[a-zA-Z],) word=${word%,}; echo "${word%%=*}" ;;
        [A-Z]*|'|'|or) ;;
        *) break ;;
      esac
    done
  done | sort -u
}

_windtunnel() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]:-}
  COMPREPLY=()
  if [ "$COMP_CWORD" -le 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_windtunnel_commands "$program") help --help --version" -- "$word")
  elif [ "$command" = help ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_windtunnel_commands "$program")" -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_windtunnel_flags "$program" "$command") --help" -- "$word")
  else
    local words=
    # Operations and sub-commands stand in the manual's synopsis as {one|two|three}.
    [ "$COMP_CWORD" -eq 2 ] && words=$("$program" help "$command" 2>/dev/null | grep -oE '\{[a-z0-9_|]+\}' | head -n 1 | tr '{|}' '   ')
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    if [ ${#COMPREPLY[@]} -eq 0 ]; then
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
  fi
}

complete -F _windtunnel windtunnel
