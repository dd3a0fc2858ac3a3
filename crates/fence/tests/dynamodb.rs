//! Fenced items, against moto: a stand-in that keeps everything in memory. It shows that requests and conditions are
//! right; races are for the stores that are atomic by construction, see `cas.rs`.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use leasehold_fence::Fence;
use leasehold_fence::cas::{CasFence, CompareAndSet};
use leasehold_fence::conformance::{CasLines, agreement, cases, store};
use leasehold_fence::dynamodb::{DynamoFence, Items, KEY};
use support::{grant, name, seed, word};

fn client(url: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(url)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Client::from_conf(config.build())
}

async fn items(url: &str) -> Items {
    let client = client(url);
    let key = KeySchemaElement::builder().attribute_name(KEY).key_type(KeyType::Hash).build().unwrap();
    let kind = ScalarAttributeType::S;
    let attribute = AttributeDefinition::builder().attribute_name(KEY).attribute_type(kind).build().unwrap();
    let table = client.create_table().table_name("things").billing_mode(BillingMode::PayPerRequest);
    table.key_schema(key).attribute_definitions(attribute).send().await.unwrap();
    Items::new(client, "things")
}

#[tokio::test]
async fn conditional_puts_keep_the_contract() {
    let server = leasehold_testbed::moto();
    let items = items(server.url()).await;
    store(&items).await;
    let lines = CasLines(CasFence::new(items));
    cases(&lines).await;
    agreement(&lines, seed()).await;
}

#[tokio::test]
async fn a_paused_holder_is_refused_and_out_of_reach_is_no_admission() {
    let server = leasehold_testbed::moto();
    let things = DynamoFence::new(items(server.url()).await);
    let fence = Fence::of(&name("books/2026"));
    things.claim(&fence, &grant("books/2026", 34)).await.unwrap();
    let late = things.update(&fence, &grant("books/2026", 33).write(), |_| b"late".to_vec()).await;
    assert_eq!(word(&late), "stale");
    assert_eq!(things.value(&fence).await.unwrap(), None);
    let foreign = things.store().put_if("other", b"no document", None).await;
    assert!(foreign.unwrap());
    let damaged = things.value(&Fence::of(&name("other"))).await;
    assert_eq!(word(&damaged), "corrupt");
    server.kill(0);
    let lost = things.update(&fence, &grant("books/2026", 35).write(), |_| b"?".to_vec()).await;
    assert_eq!(word(&lost), "store");
}
