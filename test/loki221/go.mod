// Builds Loki 2.2.1, the last Apache-2.0 release, for tests and the demo:
//
//	go build -o OUT github.com/grafana/loki/cmd/loki
//
// A module of its own: Loki's gRPC 1.29 and the product's packages do not resolve together.
module flink-loki/test/loki221

// As in Loki's own go.mod: at 1.17 or later every indirect requirement would be listed here.
go 1.15

require (
	// v2.2.1, under the name that the module proxy accepts (no /v2 in Loki's module path).
	github.com/grafana/loki v1.6.2-0.20210406003638-babea82ef558

	// Loki asks for 1.0.1, with which every log query panics under a current Go.
	github.com/modern-go/reflect2 v1.0.2 // indirect
)

// From here on the replace lines of Loki's go.mod: a module's own are not read when it is a dependency.
replace (
	github.com/Azure/azure-sdk-for-go => github.com/Azure/azure-sdk-for-go v36.2.0+incompatible
	github.com/bradfitz/gomemcache => github.com/themihai/gomemcache v0.0.0-20180902122335-24332e2d58ab
	github.com/go-openapi/errors => github.com/go-openapi/errors v0.19.4
	github.com/go-openapi/validate => github.com/go-openapi/validate v0.19.8
	github.com/gocql/gocql => github.com/grafana/gocql v0.0.0-20200605141915-ba5dc39ece85
	github.com/hashicorp/consul => github.com/hashicorp/consul v1.5.1
	github.com/hpcloud/tail => github.com/grafana/tail v0.0.0-20201004203643-7aa4e4a91f03
	github.com/satori/go.uuid => github.com/satori/go.uuid v1.2.0
	google.golang.org/grpc => google.golang.org/grpc v1.29.1
	k8s.io/api => k8s.io/api v0.19.4
	k8s.io/client-go => k8s.io/client-go v0.19.4
)
