package bulletinboard.store;

import bulletinboard.model.Draft;

import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Generates the same advertisements at every start. */
public final class SeedAds {
    private static final int BATCH_ROWS = 1_000;
    private static final List<String> THINGS =
            List.of(
                    "bicycle",
                    "sofa",
                    "bookshelf",
                    "piano",
                    "camera",
                    "tent",
                    "kettle",
                    "desk",
                    "lamp",
                    "violin",
                    "canoe",
                    "typewriter",
                    "radio",
                    "sewing machine",
                    "telescope",
                    "chess board");
    private static final List<String> STATES =
            List.of(
                    "hardly used",
                    "well kept",
                    "a little worn",
                    "newly repaired",
                    "for collectors",
                    "to be picked up soon");
    private static final List<String> PLACES =
            List.of("Kiel", "Köln", "東京", "Oslo", "Łódź", "Porto", "Αθήνα", "Leeds");

    private SeedAds() {}

    /** Has an effect only if the board is empty. */
    public static void fill(AdStore store, int count, Instant created) throws SQLException {
        if (store.statistics().count() > 0) {
            return;
        }
        Random random = new Random(1);
        List<Draft> batch = new ArrayList<>(BATCH_ROWS);
        for (int i = 0; i < count; i++) {
            batch.add(draft(random));
            if (batch.size() == BATCH_ROWS || i == count - 1) {
                store.insertAll(batch, created);
                batch.clear();
            }
        }
    }

    private static Draft draft(Random random) {
        String thing = pick(THINGS, random);
        String state = pick(STATES, random);
        String place = pick(PLACES, random);
        String text =
                "I give away my "
                        + thing
                        + ", "
                        + state
                        + ". It stands in "
                        + place
                        + " and can be seen any evening after six. Comes with a "
                        + pick(THINGS, random)
                        + " on request.";
        String contact = "seller" + random.nextInt(500) + "@example.org";
        return new Draft(thing + ", " + state, text, contact, 100L * (5 + random.nextInt(995)));
    }

    private static String pick(List<String> of, Random random) {
        return of.get(random.nextInt(of.size()));
    }
}
