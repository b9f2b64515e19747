import { Argument, Option } from "commander";
import type { StateOptions } from "./context.ts";

export interface JsonOptions extends StateOptions {
  readonly json?: true;
}

export const stateOption = (): Option => {
  return new Option(
    "--state-dir <dir>",
    "where podwright keeps its state (also PODWRIGHT_STATE_DIR; default /var/lib/podwright)",
  );
};
export const jsonOption = (): Option => new Option("--json", "print JSON");
export const podArgument = (): Argument => new Argument("<pod>", "its name, namespace/name or UID");
