package parsers

import (
	"strings"
	"testing"
)

// TestAddFileName has names as YARN, the kubelet and RocksDB give them, and others that
// come near.
func TestAddFileName(t *testing.T) {
	const (
		yarnWords = "application_id=application_1690000000000_0001 container_id=container_e12_1690000000000_0001_01_000002"
		yarn      = "/var/log/hadoop-yarn/application_1690000000000_0001/"
		hash      = "3f1b6c4e0a9d8877665544332211ffeeddccbbaa00998877665544332211abcd"
		uid       = "7c4f0f6e-2f0e-4d6c-9a59-0d9f1b0f6f6e"
		dbName    = "job_" + job1 + "_op_Window_Operator_" + alloc1 + "__100_289__uuid_" + uid
		dbWords   = "job_id=" + job1 + " subtask_index=99 parallelism=289 operator_name=Window_Operator operator_id=" + alloc1
	)
	for _, c := range []struct{ name, want string }{
		// YARN.
		{yarn + "container_e12_1690000000000_0001_01_000002/taskmanager.log", yarnWords},
		{yarn + "container_1690000000000_0001_01_000002/jobmanager.err", "application_id=application_1690000000000_0001 container_id=container_1690000000000_0001_01_000002"},
		{yarn + "container_e120_1690000000000_12345_112_1000002", "application_id=application_1690000000000_12345 container_id=container_e120_1690000000000_12345_112_1000002"},
		{"/old/container_e11_1680000000000_0009_01_000009" + yarn + "container_e12_1690000000000_0001_01_000002/taskmanager.log.1", yarnWords},
		{yarn + "taskmanager.log", ""},
		{yarn + "container_e12_1690000000000_0001_01/taskmanager.log", ""},
		{yarn + "container_e_1690000000000_0001_01_000002/taskmanager.log", ""},
		{yarn + "container_x12_1690000000000_0001_01_000002/taskmanager.log", ""},
		{yarn + "container_e12_1690000000000_0001__000002/taskmanager.log", ""},
		{yarn + "container_e12-1690000000000-0001-01-000002/taskmanager.log", ""},
		{"/data/container_2024_01_02_03.log", ""}, // a date
		{"/data/container_", ""},

		// Kubernetes.
		{"/var/log/containers/orders-taskmanager-1-2_flink-prod_flink-main-container-" + hash + ".log", "namespace=flink-prod pod=orders-taskmanager-1-2 container=flink-main-container"},
		{"orders-7d9f_flink_main-" + hash + ".log", "namespace=flink pod=orders-7d9f container=main"},
		{"/var/log/containers/orders_flink_main-" + hash[1:] + ".log", ""},
		{"/var/log/containers/orders_flink_main-" + hash + "0.log", ""},
		{"/var/log/containers/orders_flink_main-" + strings.ToUpper(hash) + ".log", ""},
		{"/var/log/containers/orders_flink_main_" + hash + ".log", ""},
		{"/var/log/containers/orders_flink_main-" + hash, ""},
		{"/var/log/containers/orders_flink_main-" + hash + ".log_1", ""},
		{"/var/log/containers/orders_flink_-" + hash + ".log", ""},
		{"/var/log/containers/flink_main-" + hash + ".log", ""},
		{"/var/log/pods/flink-prod_orders-taskmanager-1-2_" + uid + "/flink-main-container/0.log", "namespace=flink-prod pod=orders-taskmanager-1-2 container=flink-main-container"},
		{"/var/log/pods/flink_orders_" + uid + "/main/3.log.20240326-100647.gz", "namespace=flink pod=orders container=main"},
		{"/host/var/log/pods/flink_orders_" + uid + "/main/0.log", "namespace=flink pod=orders container=main"},
		{"/var/log/pods/flink_orders_" + uid + "/0.log", ""},
		{"/var/log/pods/orders_" + uid + "/main/0.log", ""},
		{"/var/log/pods/a_flink_orders_" + uid + "/main/0.log", ""},
		{"/var/log/flink_orders_" + uid + "/main/0.log", ""},

		// RocksDB.
		{"/tmp/flink-io-87c360ce/" + dbName + "/db/LOG", dbWords},
		{"/tmp/flink-io-87c360ce/" + dbName + "/db/LOG.old.1690000000000000", dbWords},
		{"/opt/flink/log/_tmp_tm_tm-1_tmp_" + dbName + "_db_LOG", dbWords},
		{"/opt/flink/log/opt_job_1_tmp_" + dbName + "_db_LOG.old.1690000000000000", dbWords},
		{"/opt/flink/log/tmp_job_" + job1 + "_op_Map_" + alloc1 + "__0_289__uuid_" + uid + "_db_LOG", "job_id=" + job1 + " operator_name=Map operator_id=" + alloc1},
		{"/opt/flink/log/tmp_job_" + job1 + "_op_Map_" + alloc1[1:] + "__1_2__uuid_" + uid + "_db_LOG", "job_id=" + job1},
		{"/opt/flink/log/tmp_job_" + job1[1:] + "_op_Map_" + alloc1 + "__1_2__uuid_" + uid + "_db_LOG", ""},
		{"/opt/flink/log/tmp_job_" + job1 + "_Map_" + alloc1 + "__1_2__uuid_" + uid + "_db_LOG", ""},
		{"/opt/flink/log/tmp_job_" + job1 + "_op_Map_" + alloc1 + "__1_2_" + uid + "_db_LOG", ""},
		{"/data/hadoop-yarn/application_1690000000000_0001/container_e12_1690000000000_0001_01_000002/tmp/" + dbName + "/db/LOG",
			yarnWords + " " + dbWords},
		{"/data/logs/data_application_1690000000000_0001_container_e12_1690000000000_0001_01_000002_tmp_" + dbName + "_db_LOG", yarnWords + " " + dbWords},

		{"/opt/flink/log/flink-root-taskexecutor-0-host-1.log", ""},
		{"taskmanager.log", ""},
		{"stdin", ""},
		{"/", ""},
		{"", ""},
	} {
		var e Event
		AddFileName(&e, []byte(c.name))
		if got := string(e.AppendLogfmt(nil)); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}
