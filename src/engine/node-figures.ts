import { errorMessage } from "../base/errors.ts";
import type { Family } from "../metrics/family.ts";
import { type ImageRecordCounts, imageRecordFamilies } from "../metrics/image-metrics.ts";
import type { NodeFacts, NodeMetrics } from "../metrics/node-metrics.ts";
import { processFamilies, processPaths } from "../metrics/process-metrics.ts";
import { SliMetrics } from "../metrics/sli-metrics.ts";
import type { NodeFigures } from "../node-api/stats-routes.ts";
import type { Logger } from "../ports/log.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import { cadvisorFamilies } from "../stats/cadvisor-metrics.ts";
import { type CadvisorSettings, cadvisorView } from "../stats/cadvisor-view.ts";
import { resourceFamilies } from "../stats/resource-metrics.ts";
import type { NodeStats } from "./node-stats.ts";
import type { Node } from "./node.ts";

export interface NodeFiguresDependencies {
  readonly stats: NodeStats;
  readonly metrics: NodeMetrics;
  readonly node: Pick<Node, "health">;
  readonly files: StatsFiles;
  readonly log: Logger;
  readonly ownPid: number;
  /** Counts the stored image pull records. */
  readonly imageRecords: () => Promise<ImageRecordCounts>;
}

export interface NodeFiguresSettings extends CadvisorSettings {
  readonly facts: NodeFacts;
}

/** The node's monitoring endpoints. */
export function nodeFigures(deps: NodeFiguresDependencies, settings: NodeFiguresSettings): NodeFigures {
  const { stats, metrics, node, files, log, ownPid } = deps;
  const attempt = async <T>(what: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      log.error("cannot collect statistics", { what, error: errorMessage(error) });
      return undefined;
    }
  };
  const resource = async (): Promise<Family[]> => {
    return resourceFamilies(await attempt("resources", () => stats.sample("resources")));
  };
  const cadvisor = async (): Promise<Family[]> => {
    const view = async (): Promise<Parameters<typeof cadvisorFamilies>[0]> =>
      await cadvisorView(files, await stats.sample("everything"), settings, await stats.sandboxImages());
    return cadvisorFamilies(await attempt("containers", view));
  };
  const own = async (): Promise<Family[]> => {
    const [texts, open] = await Promise.all([files.readTexts(processPaths), files.openFiles(ownPid)]);
    return processFamilies(texts, open?.descriptors);
  };
  const everything = async (): Promise<Family[]> => {
    const logs = await attempt("logs", () => stats.logFamily());
    const records = imageRecordFamilies(await attempt("image records", deps.imageRecords));
    const known = [
      ...metrics.families(settings.facts),
      ...stats.volumeFamilies(),
      ...records,
      ...(logs === undefined ? [] : [logs]),
    ];
    const all = [...known, ...(await own())];
    return all.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  };
  const slis = new SliMetrics(() => [{ name: "ping", ok: true }, { name: "log", ok: true }, ...node.health()]);
  return {
    summary: async (onlyCpuAndMemory) => await stats.summary(onlyCpuAndMemory),
    families: {
      "/metrics": everything,
      "/metrics/resource": resource,
      "/metrics/cadvisor": cadvisor,
      "/metrics/probes": async () => {
        const start = (await own()).filter(({ name }) => name === "process_start_time_seconds");
        return [...metrics.probeFamilies(), ...start];
      },
      "/metrics/slis": async () => slis.families(),
    },
    resetSlis: () => slis.reset(),
  };
}
