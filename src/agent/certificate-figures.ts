import type { CertificateManager } from "../certificates/certificate-manager.ts";
import { certificateFamilies } from "../certificates/metrics.ts";
import type { NodeFigures } from "../node-api/stats-routes.ts";

/** Adds metrics of the node's certificates. */
export function withCertificates(
  figures: NodeFigures,
  client: CertificateManager | undefined,
  serving: CertificateManager | undefined,
): NodeFigures {
  const path = "/metrics";
  const others = figures.families[path];
  if (others === undefined) return figures;
  const all = async () =>
    [...(await others()), ...certificateFamilies(client?.facts, serving?.facts)].toSorted((a, b) =>
      a.name < b.name ? -1 : 1,
    );
  return { ...figures, families: { ...figures.families, [path]: all } };
}
