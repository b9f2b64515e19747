import { runtimeOfPods } from "../agent/kept-settings.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { printable } from "../journal/text.ts";
import { type Check, failed, passed } from "../private-runtime/preflight/check.ts";
import { preflight, preflightBesideRuntime } from "../private-runtime/preflight/preflight.ts";
import type { Health, HealthCheck } from "../server/local-api.ts";
import { connectCri } from "../cri/client.ts";
import type { MachineContext } from "./machine-context.ts";
import { evictsForNode, findEngine, searchPath } from "./engine-process.ts";
import { plural } from "./format.ts";
import { remedyAsTyped } from "./own-command.ts";
import { checkRuntime } from "./runtime-check.ts";
import type { Painter } from "./terminal.ts";

export interface DoctorOptions {
  readonly json?: true;
  readonly runtimeEndpoint?: string;
  /** Checks what would change if podwright were this machine's kubelet. */
  readonly kubelet?: true;
}

/**
 * `podwright doctor`: checks whether this machine can run pods, with the given runtime, else that of the engine or of the
 * pods that it left, else podwright's own; and the engine's health. Exit code 3 if a check fails.
 */
export async function doctorCommand(context: MachineContext, options: DoctorOptions): Promise<ExitCode> {
  const { files, layout, terminal } = context;
  const { health, problem } = await engineState(context);
  const { runtimeEndpoint: engines = await runtimeOfPods(files, layout) } = health ?? {};
  const endpoint = options.runtimeEndpoint ?? engines ?? layout.containerd.endpoint;
  const checks = await machineChecks(context, endpoint);
  const found = [...checks, ...(health === undefined ? [] : engineChecks(health)), ...(problem ?? [])];
  const all = asTyped(found, layout.stateDirectory);
  if (options.json === true) {
    const engine = health === undefined ? null : { ...health, checks: asTyped(health.checks, layout.stateDirectory) };
    terminal.print(JSON.stringify({ checks: all, engine }, undefined, 2));
  } else {
    const asked = problem === undefined ? layout.stateDirectory : undefined;
    terminal.print(doctorLines(all, health, asked, terminal.paint).join("\n"));
  }
  return all.some((check) => check.ok === "failed") ? ExitCode.environment : ExitCode.done;
}

/** The engine's health; undefined: none runs, or it cannot be asked, which is a failed check. */
async function engineState(
  context: MachineContext,
): Promise<{ readonly health: Health | undefined; readonly problem?: readonly [Check] }> {
  try {
    return { health: await findEngine(context) };
  } catch (error) {
    if (!(error instanceof PodwrightError)) throw error;
    return { health: undefined, problem: [failed("engine", error.message, error.remedy ?? "see its log")] };
  }
}

async function machineChecks(context: MachineContext, endpoint: string): Promise<readonly Check[]> {
  const { clock, files, mounts, processes, layout } = context;
  const checked = { files, mounts, processes, layout, searchPath: searchPath(context), onlyLooks: true } as const;
  if (endpoint === layout.containerd.endpoint) return (await preflight(checked)).checks;
  using cri = connectCri(endpoint, clock);
  return [...(await preflightBesideRuntime(checked)), ...(await checkRuntime(cri, clock, endpoint))];
}

/** The engine's checks, and whether it evicts pods to protect the machine. */
export function engineChecks(health: Pick<Health, "checks">): Check[] {
  const detail = evictsForNode(health)
    ? "on: pods are evicted before the machine runs out of memory or disk"
    : "off: pods are evicted for their own storage limits only";
  return [...health.checks.map(checkOf), passed("engine: evictions", detail)];
}

function checkOf({ name, ok, warning = false, detail, remedy }: HealthCheck): Check {
  return {
    name: `engine: ${name}`,
    ok: ok ? (warning ? "warning" : "ok") : "failed",
    detail,
    ...(remedy !== undefined && { remedy }),
  };
}

/** The checks with the commands of their remedies as they are typed. @param stateDirectory undefined: they concern no engine */
export function asTyped<C extends Pick<Check, "remedy">>(
  checks: readonly C[],
  stateDirectory: string | undefined,
): C[] {
  return checks.map((check) => {
    const { remedy } = check;
    return remedy === undefined ? check : { ...check, remedy: remedyAsTyped(remedy, stateDirectory) };
  });
}

const marks = { ok: "✓", warning: "!", failed: "✗" } as const;

/** One line per check, with its remedy below it. @param stateDirectory undefined: the checks concern no engine */
export function doctorLines(
  checks: readonly Check[],
  health: Health | undefined,
  stateDirectory: string | undefined,
  paint: Painter,
): string[] {
  const paints = { ok: paint.good, warning: paint.caution, failed: paint.bad } as const;
  const width = Math.max(...checks.map((check) => check.name.length));
  const lines = checks.flatMap((check) => {
    const mark = paints[check.ok](marks[check.ok]);
    const line = `${mark} ${check.name.padEnd(width)}   ${printable(check.detail)}`;
    return check.remedy === undefined ? [line] : [line, `  ${" ".repeat(width)}   → ${printable(check.remedy)}`];
  });
  const engine =
    health === undefined
      ? stateDirectory && `no engine runs for ${stateDirectory}`
      : `engine ${health.version}, process ${health.pid}, on ${printable(health.runtime)} (${health.runtimeEndpoint})`;
  const count = (ok: Check["ok"]): number => checks.filter((check) => check.ok === ok).length;
  const failures = count("failed");
  const verdict = failures > 0 ? paint.bad(`${failures} failed`) : paint.good("ready to run pods");
  return [
    ...lines,
    "",
    ...(engine === undefined ? [] : [engine]),
    `${verdict}, ${plural(count("warning"), "warning")}`,
  ];
}
