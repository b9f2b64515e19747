import { driverObject } from "./csi-claims.ts";
import { image, type Member, workload } from "./member.ts";

/** Each start of a pod adds a line with its name. */
const container = {
  name: "c",
  image,
  imagePullPolicy: "Never",
  command: ["sh", "-c", "trap 'exit 0' TERM; hostname >>/data/names; sleep 3600 & wait"],
  volumeMounts: [{ name: "data", mountPath: "/data" }],
};

/** A StatefulSet `db` whose pods have a claim each of the driver, which attaches its volumes; waits until all are Ready. */
export async function deployWithClaims(member: Member, driver: string, replicas: number): Promise<void> {
  const claim = {
    metadata: { name: "data" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "test",
      resources: { requests: { storage: "1Gi" } },
    },
  };
  await member.apply(
    driverObject(driver, { attachRequired: true }),
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: "test" },
      provisioner: driver,
      allowVolumeExpansion: true,
      volumeBindingMode: "WaitForFirstConsumer",
    },
    workload(
      "StatefulSet",
      "db",
      { replicas, serviceName: "db", volumeClaimTemplates: [claim] },
      { containers: [container] },
    ),
  );
  await member.rolledOut("statefulset/db");
}
