import type { Pod } from "../../api/pod.ts";
import type { Cri } from "../../ports/cri.ts";
import type { ResourceRecord } from "../../resources/resource-record.ts";
import { effectiveRequirements } from "../status/actuated.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";
import { containerResources } from "../status/inspect.ts";
import { requirementsAsReported } from "../actions/resize-actions.ts";

/**
 * Records the resources of a container from an earlier request without a response: some runtimes (CRI-O) then return
 * that earlier container, and its pod may have been resized since. Differences are applied as a resize once it runs. A
 * runtime that does not report resources does not block the start.
 */
export async function recordLateContainer(
  { cri, actuated }: { readonly cri: Cri; readonly actuated: Pick<ResourceRecord, "setPart"> },
  pod: Pod,
  { container, kind }: Pick<ContainerToStart, "container" | "kind">,
  id: string,
): Promise<void> {
  if (kind === "ephemeral") return;
  const status = await cri.runtime.containerStatus({ containerId: id }).then(
    (answer) => answer.status,
    () => undefined,
  );
  const asked = effectiveRequirements(container, pod.spec.resources);
  const resources = containerResources(status?.resources?.linux);
  const has = requirementsAsReported(asked, pod.spec.resources, { resources });
  if (has !== asked) actuated.setPart(pod.metadata.uid, container.name, has);
}
