import { ExitCode } from "../base/errors.ts";
import type { ApplyRequest, Plan } from "../server/local-api.ts";
import type { MachineContext } from "./machine-context.ts";
import { EngineGone } from "./engine-client.ts";
import { printError, printWarning } from "./error-output.ts";
import { Interrupts } from "./interrupts.ts";
import { sayNoEngine } from "./journal-source.ts";
import { type LoadedInput, loadInput, located } from "./manifest-input.ts";
import { planText } from "./plan-text.ts";

/**
 * `podwright plan [FILE…]`: shows what the engine would do next with each pod and why, and what applying the manifests would
 * change, without doing it. Without an engine manifests are planned for a node without pods.
 */
export async function planCommand(
  context: MachineContext,
  inputs: readonly string[],
  options: { readonly json?: true },
): Promise<ExitCode> {
  const { terminal, clock, engine } = context;
  const given = inputs.length === 0 ? undefined : await read(context, inputs);
  for (const error of given?.errors ?? []) printError(terminal, error);
  for (const warning of given?.warnings ?? []) printWarning(terminal, warning);
  if (given !== undefined && given.errors.length > 0) return ExitCode.badInput;
  const plan = await engine
    .plan(given?.request)
    .catch((error: unknown) => {
      if (!(error instanceof EngineGone) || given === undefined) throw error;
      return withoutEngine(context, given.request);
    })
    .catch((error: unknown) => {
      throw given === undefined ? error : located(error, given.origins);
    });
  if (options.json === true) terminal.print(JSON.stringify(plan, undefined, 2));
  else if (plan.pods.length === 0 && plan.objects.length === 0) terminal.warn("no pods");
  else terminal.print(planText(plan, clock.now(), terminal.paint).join("\n"));
  return ExitCode.done;
}

/** Manifests can be planned before any engine has run. */
async function withoutEngine(context: MachineContext, request: ApplyRequest): Promise<Plan> {
  // Loaded lazily: it is most of a node.
  const { planWithoutEngine } = await import("./plan-without-engine.ts");
  const plan = await planWithoutEngine(context, request);
  sayNoEngine(context, "showing what a node without pods would do");
  return plan;
}

/** Reads the manifests; Ctrl-C aborts a wait for standard input or a server. */
async function read(context: MachineContext, inputs: readonly string[]): Promise<LoadedInput> {
  using interrupts = new Interrupts(process, context.terminal.closed);
  return await loadInput(context, inputs, interrupts.first);
}
