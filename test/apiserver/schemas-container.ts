import { all, list, localReference, object, quantities, type Schema, stringMap } from "./schema.ts";

/** corev1.ResourceRequirements. */
export const resources = object(all(quantities, "limits requests"), {
  claims: list(object(all("string", "name request"))),
});

const keyInObject = object(all("string", "name key"), all("boolean", "optional"));
const fieldReference = object(all("string", "apiVersion fieldPath"));
const resourceReference = object(all("string", "containerName resource"), all("quantity", "divisor"));
const fileReference = object(all("string", "volumeName path key"), all("boolean", "optional"));
const environment = object(all("string", "name value"), {
  valueFrom: object(all(keyInObject, "configMapKeyRef secretKeyRef"), {
    fieldRef: fieldReference,
    resourceFieldRef: resourceReference,
    fileKeyRef: fileReference,
  }),
});
const optionalReference = object(all("string", "name"), all("boolean", "optional"));
const environmentSource = object(all("string", "prefix"), all(optionalReference, "configMapRef secretRef"));

const command = object(all(list("string"), "command"));
const get = object(all("string", "path host scheme"), all("integer or string", "port"), {
  httpHeaders: list(object(all("string", "name value"))),
});
const socket = object(all("integer or string", "port"), all("string", "host"));
const action = { exec: command, httpGet: get, tcpSocket: socket };
const probe = object(
  action,
  { grpc: object(all("integer", "port"), all("string", "service")) },
  all("integer", "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold"),
  all("integer", "terminationGracePeriodSeconds"),
);
const hook = object(action, { sleep: object(all("integer", "seconds")) });
const lifecycle = object(all(hook, "postStart preStop"), all("string", "stopSignal"));

export const seLinux = object(all("string", "user role type level"));
export const windows = object(
  all("string", "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName"),
  all("boolean", "hostProcess"),
);
export const profile = object(all("string", "type localhostProfile"));
const securityContext = object(
  all("boolean", "privileged runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation"),
  all("integer", "runAsUser runAsGroup"),
  all("string", "procMount"),
  all(profile, "seccompProfile appArmorProfile"),
  { capabilities: object(all(list("string"), "add drop")), seLinuxOptions: seLinux, windowsOptions: windows },
);

const volumeMount = object(
  all("string", "name mountPath subPath subPathExpr mountPropagation recursiveReadOnly"),
  all("boolean", "readOnly"),
);
const port = object(all("string", "name protocol hostIP"), all("integer", "containerPort hostPort"));
const exitCodes = object(all("string", "operator"), { values: list("integer") });

/** corev1.Container. */
export const containerMembers = {
  ...all(
    "string",
    "name image workingDir restartPolicy terminationMessagePath terminationMessagePolicy imagePullPolicy",
  ),
  ...all(list("string"), "command args"),
  ...all("boolean", "stdin stdinOnce tty"),
  ...all(probe, "livenessProbe readinessProbe startupProbe"),
  ports: list(port),
  envFrom: list(environmentSource),
  env: list(environment),
  resources,
  resizePolicy: list(object(all("string", "resourceName restartPolicy"))),
  restartPolicyRules: list(object(all("string", "action"), { exitCodes })),
  volumeMounts: list(volumeMount),
  volumeDevices: list(object(all("string", "name devicePath"))),
  lifecycle,
  securityContext,
} as const;

const items = list(object(all("string", "key path"), all("integer", "mode")));
const downwardItems = list(
  object(all("string", "path"), all("integer", "mode"), {
    fieldRef: fieldReference,
    resourceFieldRef: resourceReference,
  }),
);
const projection = object({
  secret: object(all("string", "name"), all("boolean", "optional"), { items }),
  configMap: object(all("string", "name"), all("boolean", "optional"), { items }),
  downwardAPI: object({ items: downwardItems }),
  serviceAccountToken: object(all("string", "audience path"), all("integer", "expirationSeconds")),
  clusterTrustBundle: object(all("string", "name signerName path"), all("boolean", "optional"), {
    labelSelector: "any",
  }),
  podCertificate: object(
    all("string", "signerName keyType credentialBundlePath keyPath certificateChainPath"),
    all("integer", "maxExpirationSeconds"),
    { userAnnotations: stringMap },
  ),
});

/** Vendors' volume types are not checked. */
const vendors =
  "gcePersistentDisk awsElasticBlockStore gitRepo iscsi glusterfs rbd flexVolume cinder cephfs flocker fc azureFile " +
  "vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos";

/** corev1.Volume. */
export const volume: Schema = object(all("string", "name"), all("any", vendors), {
  hostPath: object(all("string", "path type")),
  emptyDir: object(all("string", "medium"), all("quantity", "sizeLimit")),
  secret: object(all("string", "secretName"), all("integer", "defaultMode"), all("boolean", "optional"), { items }),
  configMap: object(all("string", "name"), all("integer", "defaultMode"), all("boolean", "optional"), { items }),
  downwardAPI: object(all("integer", "defaultMode"), { items: downwardItems }),
  projected: object(all("integer", "defaultMode"), { sources: list(projection) }),
  nfs: object(all("string", "server path"), all("boolean", "readOnly")),
  persistentVolumeClaim: object(all("string", "claimName"), all("boolean", "readOnly")),
  csi: object(all("string", "driver fsType"), all("boolean", "readOnly"), {
    volumeAttributes: stringMap,
    nodePublishSecretRef: localReference,
  }),
  ephemeral: object(all("any", "volumeClaimTemplate readOnly")),
  image: object(all("string", "reference pullPolicy")),
});

const terminated = object(
  all("integer", "exitCode signal"),
  all("string", "reason message containerID"),
  all("time", "startedAt finishedAt"),
);
const state = object({
  waiting: object(all("string", "reason message")),
  running: object(all("time", "startedAt")),
  terminated,
});
const mountStatus = object(all("string", "name mountPath recursiveReadOnly"), all("boolean", "readOnly"), {
  volumeStatus: object({ image: object(all("string", "imageRef")) }),
});
const resourceHealth = object(all("string", "name"), {
  resources: list(object(all("string", "resourceID health message"))),
});

/** corev1.ContainerStatus. */
export const containerStatus = object(
  all("string", "name image imageID containerID stopSignal"),
  all(state, "state lastState"),
  all("boolean", "ready started"),
  all("integer", "restartCount"),
  {
    allocatedResources: quantities,
    resources,
    volumeMounts: list(mountStatus),
    user: object({ linux: object(all("integer", "uid gid"), { supplementalGroups: list("integer") }) }),
    allocatedResourcesStatus: list(resourceHealth),
  },
);
