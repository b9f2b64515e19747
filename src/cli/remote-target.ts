import { listedContainers } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { defaultContainer, defaultContainerAnnotation } from "../server/default-container.ts";
import { didYouMean } from "../base/did-you-mean.ts";
import type { CommandContext } from "./context.ts";
import { podLabel } from "../server/pod-selector.ts";
import { ownCommand } from "./own-command.ts";

type TargetContext = Pick<CommandContext, "engine" | "layout" | "terminal">;

/** The selected pod of the running engine, as an API object. @throws PodwrightError (bad input) */
export async function remotePod({ engine, layout }: TargetContext, selector: string): Promise<Pod> {
  const view = await engine.pod(selector);
  const { uid, name, state } = view;
  const pod = (await engine.podList()).find((candidate) => candidate.metadata.uid === uid);
  if (pod !== undefined && state !== "terminated") return pod;
  throw new PodwrightError(ExitCode.failed, `pod ${name} is no longer running`, {
    remedy: `'${ownCommand(layout.stateDirectory, "why", podLabel(view))}' shows the reason`,
  });
}

/**
 * The given container, or the pod's default, with a notice if there are others.
 * @throws PodwrightError (bad input) with the existing names
 */
export function remoteContainer({ terminal }: TargetContext, { metadata, spec }: Pod, asked?: string): Container {
  const all = listedContainers(spec);
  const names = all.map((container) => container.name);
  const chosen =
    asked === undefined ? defaultContainer(names, metadata.annotations?.[defaultContainerAnnotation]) : undefined;
  if (chosen?.note !== undefined) terminal.warn(terminal.warnPaint.faint(chosen.note));
  const name = asked ?? chosen?.name;
  const found = all.find((container) => container.name === name);
  if (found !== undefined) return found;
  const meant = didYouMean(name ?? "", names);
  throw new PodwrightError(ExitCode.badInput, `pod ${metadata.name} has no container ${name ?? ""}`, {
    remedy: meant === undefined ? `it has ${names.join(", ")}` : `did you mean ${meant}?`,
  });
}

/** `/<verb>/<namespace>/<pod>/<uid>[/<container>]` of the kubelet's API. */
export function remotePath(verb: string, { metadata }: Pod, container?: string): string {
  const parts = [
    verb,
    metadata.namespace,
    metadata.name,
    metadata.uid,
    ...(container === undefined ? [] : [container]),
  ];
  return `/${parts.map(encodeURIComponent).join("/")}`;
}
