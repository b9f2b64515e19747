import { ExitCode, PodwrightError } from "../base/errors.ts";
import { printable } from "../journal/text.ts";
import type { EvictionPreview } from "../server/local-api.ts";
import type { CommandContext } from "./context.ts";

export interface EvictOptions {
  readonly preview?: true;
  readonly confirm?: true;
  readonly signal?: string;
  readonly json?: true;
}

/** `podwright evict --preview`: the eviction order, with reasons. `--confirm`: allows evictions that wait for a confirmation. */
export async function evictCommand(context: CommandContext, options: EvictOptions): Promise<ExitCode> {
  const { terminal, engine } = context;
  if ((options.preview === true) === (options.confirm === true)) {
    const problem =
      options.preview === true ? "takes --preview or --confirm, not both" : "needs either --preview or --confirm";
    throw new PodwrightError(ExitCode.badInput, `'evict' ${problem}`, {
      remedy: "--preview shows which pods the node would evict, --confirm allows evictions that await confirmation",
    });
  }
  if (options.confirm === true) {
    if (options.signal !== undefined) {
      throw new PodwrightError(ExitCode.badInput, "'evict --confirm' allows all evictions: it takes no --signal", {
        remedy: "leave out --signal; --preview --signal shows which pods the node would evict",
      });
    }
    const confirmation = await engine.confirmEvictions();
    if (options.json === true) {
      terminal.print(JSON.stringify(confirmation, undefined, 2));
      return ExitCode.done;
    }
    const { waited } = confirmation;
    const isNews = "evictions by the current settings are now allowed";
    terminal.print(waited ? isNews : "no eviction waits for a confirmation");
    return ExitCode.done;
  }
  const preview = await engine.evictionPreview(options.signal);
  if (options.json === true) terminal.print(JSON.stringify(preview, undefined, 2));
  else terminal.print(previewLines(preview).join("\n"));
  return ExitCode.done;
}

/** One line per pod, in the order of eviction. */
export function previewLines({ standing, pods }: EvictionPreview): string[] {
  if (pods.length === 0) return [standing, "no running pod can be evicted"];
  const width = Math.max(...pods.map(({ namespace, name }) => `${namespace}/${name}`.length));
  const places = String(pods.length).length;
  return [
    standing,
    ...pods.map(({ namespace, name, place }, index) => {
      const number = String(index + 1).padStart(places);
      return `${number}  ${printable(`${namespace}/${name}`).padEnd(width)}  ${printable(place)}`;
    }),
  ];
}
