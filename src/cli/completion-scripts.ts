/** Each asks the program for completions, so that they never differ from `--help`. */
const bash = `# podwright's completion for bash
_podwright() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _podwright podwright
`;

const zsh = `#compdef podwright
# podwright's completion for zsh
_podwright() {
  local line
  local -a found
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( $#found )); then _describe podwright found; else _files; fi
}
if [[ $funcstack[1] == _podwright ]]; then _podwright "$@"; else compdef _podwright podwright; fi
`;

const fish = `# podwright's completion for fish
function __podwright_find
    set -l words (commandline -opc) (commandline -ct)
    set -g __podwright_found ($words[1] complete -- $words[2..-1] 2>/dev/null)
    test (count $__podwright_found) -gt 0
end
complete -c podwright -f -n __podwright_find -a '(printf "%s\\n" $__podwright_found)'
`;

export const completionScripts = { bash, zsh, fish } as const;

export type Shell = keyof typeof completionScripts;
