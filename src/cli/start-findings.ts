import { resolve } from "node:path/posix";
import { credentialPlugins } from "../agent/credential-providers.ts";
import { credentialFiles } from "../agent/node-credentials.ts";
import { openPorts } from "../agent/process-start.ts";
import { type StartCheck, startChecks } from "../agent/start-checks.ts";
import { errorMessage, PodwrightError } from "../base/errors.ts";
import type { SurveyedConfiguration } from "../config/load.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import { type ServingSettings, servingSettings } from "../config/serving.ts";
import { type Check, failed, oneLine, passed } from "../private-runtime/preflight/check.ts";

/** Flags that name files, which the kubelet resolves against its working directory. */
const pathFlags = [
  "bootstrapKubeconfig",
  "certDir",
  "imageCredentialProviderBinDir",
  "imageCredentialProviderConfig",
  "kubeconfig",
  "lockFile",
  "rootDir",
  "tokenAuthFile",
] as const satisfies readonly (keyof NodeFlagValues)[];

/** What would prevent the kubelet's start, as its start itself checks it. Changes nothing. */
export async function startFindings(
  { configuration, isWritten }: Pick<SurveyedConfiguration, "configuration" | "isWritten">,
  node: NodeFlagValues,
): Promise<readonly Check[]> {
  const ports = await openPorts();
  const flags = absolute(node);
  let served: ServingSettings | undefined;
  const serving = await found({
    name: "serving",
    check: async () => void (served = servingSettings(configuration, isWritten)),
  });
  const checks: readonly StartCheck[] = [
    ...startChecks({ ports, configuration, flags, served }),
    { name: "credential providers", check: async () => void (await credentialPlugins(ports.files, flags)) },
    { name: "kubeconfig", check: async () => void (await credentialFiles(ports, flags)) },
  ];
  const problems = [...serving, ...(await Promise.all(checks.map(found))).flat()];
  return problems.length === 0 ? [passed("start", "nothing prevents the start")] : problems;
}

async function found({ name, check }: StartCheck): Promise<readonly Check[]> {
  try {
    await check();
    return [];
  } catch (error) {
    const remedy = (error instanceof PodwrightError ? error.remedy : undefined) ?? "podwright would not start";
    return [failed(name, oneLine(errorMessage(error)), remedy)];
  }
}

/** A systemd service starts in the root directory. */
function absolute(flags: NodeFlagValues): NodeFlagValues {
  const paths = pathFlags.flatMap((name) => {
    const path = flags[name] ?? "";
    return path === "" ? [] : [[name, resolve("/", path)] as const];
  });
  return { ...flags, ...Object.fromEntries(paths) };
}
