module {
  tt.func public @norm_backward(%d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %z: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %means: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %slopes: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %gamma: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %d_x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_y: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %rows = arith.constant $rows : i32
    %hidden = arith.constant $hidden : i32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<569420461> : tensor<128xi32>
    %cst_0 = arith.constant dense<15> : tensor<128xi32>
    %cst_1 = arith.constant dense<-749064809> : tensor<128xi32>
    %cst_2 = arith.constant dense<16> : tensor<128xi32>
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<128x$float>
    %c2_i32 = arith.constant 2 : i32
    %c3_i32 = arith.constant 3 : i32
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<128xf32>
    %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %1 = tt.splat %hidden : i32 -> tensor<128xi32>
    %2 = arith.cmpi slt, %0, %1 : tensor<128xi32>
    %3 = tt.get_program_id x : i32
    %4 = tt.get_num_programs x : i32
    %5 = tt.splat %gamma : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %6 = tt.addptr %5, %0 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %7 = tt.load %6, %2, %cst_4 : tensor<128x!tt.ptr<f32>>
    %8 = tt.load %seed : !tt.ptr<i32>
    %9 = arith.shrui %8, %c16_i32 : i32
    %10 = arith.xori %8, %9 : i32
    %11 = arith.muli %10, %c569420461_i32 : i32
    %12 = arith.shrui %11, %c15_i32 : i32
    %13 = arith.xori %11, %12 : i32
    %14 = arith.muli %13, %c-749064809_i32 : i32
    %15 = arith.shrui %14, %c15_i32 : i32
    %16 = arith.xori %14, %15 : i32
    %17 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %18 = tt.load %17 : !tt.ptr<i32>
    %19 = arith.addi %16, %18 : i32
    %20 = arith.shrui %19, %c16_i32 : i32
    %21 = arith.xori %19, %20 : i32
    %22 = arith.muli %21, %c569420461_i32 : i32
    %23 = arith.shrui %22, %c15_i32 : i32
    %24 = arith.xori %22, %23 : i32
    %25 = arith.muli %24, %c-749064809_i32 : i32
    %26 = arith.shrui %25, %c15_i32 : i32
    %27 = arith.xori %25, %26 : i32
    %28:3 = scf.for %arg13 = %3 to %rows step %4 iter_args(%arg14 = %cst_4, %arg15 = %cst_4, %arg16 = %cst_4) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>)  : i32 {
      %39 = arith.extsi %arg13 : i32 to i64
      %40 = arith.extsi %hidden : i32 to i64
      %41 = arith.muli %39, %40 : i64
      %42 = arith.extsi %0 : tensor<128xi32> to tensor<128xi64>
      %43 = tt.splat %41 : i64 -> tensor<128xi64>
      %44 = arith.addi %43, %42 : tensor<128xi64>
      %45 = tt.splat %d_out : !tt.ptr<$float> -> tensor<128x!tt.ptr<$float>>
      %46 = tt.addptr %45, %44 : tensor<128x!tt.ptr<$float>>, tensor<128xi64>
      %47 = tt.load %46, %2, %cst_3 : tensor<128x!tt.ptr<$float>>
      %48 = arith.extf %47 : tensor<128x$float> to tensor<128xf32>
      %49 = tt.splat %z : !tt.ptr<$float> -> tensor<128x!tt.ptr<$float>>
      %50 = tt.addptr %49, %44 : tensor<128x!tt.ptr<$float>>, tensor<128xi64>
      %51 = tt.load %50, %2, %cst_3 : tensor<128x!tt.ptr<$float>>
      %52 = arith.extf %51 : tensor<128x$float> to tensor<128xf32>
      %53 = tt.addptr %slopes, %arg13 : !tt.ptr<f32>, i32
      %54 = tt.load %53 : !tt.ptr<f32>
      %55 = tt.addptr %means, %arg13 : !tt.ptr<f32>, i32
      %56 = tt.load %55 : !tt.ptr<f32>
      %57 = tt.splat %56 : f32 -> tensor<128xf32>
      %58 = arith.subf %52, %57 : tensor<128xf32>
      %59 = tt.splat %54 : f32 -> tensor<128xf32>
      %60 = arith.mulf %58, %59 : tensor<128xf32>
      %61 = arith.select %2, %60, %cst_4 : tensor<128xi1>, tensor<128xf32>
      %62 = arith.mulf %48, %61 : tensor<128xf32>
      %63 = arith.addf %arg14, %62 : tensor<128xf32>
      %64 = arith.addf %arg15, %48 : tensor<128xf32>
      %65 = arith.mulf %48, %7 : tensor<128xf32>
      %66 = "tt.reduce"(%65) <{axis = 0 : i32}> ({
      ^bb0(%arg17: f32, %arg18: f32):
        %135 = arith.addf %arg17, %arg18 : f32
        tt.reduce.return %135 : f32
      }) : (tensor<128xf32>) -> f32
      %67 = arith.sitofp %hidden : i32 to f32
      %68 = arith.divf %66, %67 : f32
      %69 = tt.splat %68 : f32 -> tensor<128xf32>
      %70 = arith.subf %65, %69 : tensor<128xf32>
      %71 = arith.mulf %65, %61 : tensor<128xf32>
      %72 = "tt.reduce"(%71) <{axis = 0 : i32}> ({
      ^bb0(%arg17: f32, %arg18: f32):
        %135 = arith.addf %arg17, %arg18 : f32
        tt.reduce.return %135 : f32
      }) : (tensor<128xf32>) -> f32
      %73 = arith.divf %72, %67 : f32
      %74 = tt.splat %73 : f32 -> tensor<128xf32>
      %75 = arith.mulf %61, %74 : tensor<128xf32>
      %76 = arith.subf %70, %75 : tensor<128xf32>
      %77 = arith.mulf %76, %59 : tensor<128xf32>
      %78 = tt.splat %d_x : !tt.ptr<$float> -> tensor<128x!tt.ptr<$float>>
      %79 = tt.addptr %78, %44 : tensor<128x!tt.ptr<$float>>, tensor<128xi64>
      %80 = arith.truncf %77 : tensor<128xf32> to tensor<128x$float>
      tt.store %79, %80, %2 : tensor<128x!tt.ptr<$float>>
      %81 = arith.addi %27, %c1_i32 : i32
      %82 = arith.shrui %81, %c16_i32 : i32
      %83 = arith.xori %81, %82 : i32
      %84 = arith.muli %83, %c569420461_i32 : i32
      %85 = arith.shrui %84, %c15_i32 : i32
      %86 = arith.xori %84, %85 : i32
      %87 = arith.muli %86, %c-749064809_i32 : i32
      %88 = arith.shrui %87, %c15_i32 : i32
      %89 = arith.xori %87, %88 : i32
      %90 = arith.addi %arg13, %89 : i32
      %91 = arith.shrui %90, %c16_i32 : i32
      %92 = arith.xori %90, %91 : i32
      %93 = arith.muli %92, %c569420461_i32 : i32
      %94 = arith.shrui %93, %c15_i32 : i32
      %95 = arith.xori %93, %94 : i32
      %96 = arith.muli %95, %c-749064809_i32 : i32
      %97 = arith.shrui %96, %c15_i32 : i32
      %98 = arith.xori %96, %97 : i32
      %99 = arith.addi %27, %c2_i32 : i32
      %100 = arith.shrui %99, %c16_i32 : i32
      %101 = arith.xori %99, %100 : i32
      %102 = arith.muli %101, %c569420461_i32 : i32
      %103 = arith.shrui %102, %c15_i32 : i32
      %104 = arith.xori %102, %103 : i32
      %105 = arith.muli %104, %c-749064809_i32 : i32
      %106 = arith.shrui %105, %c15_i32 : i32
      %107 = arith.xori %105, %106 : i32
      %108 = tt.splat %107 : i32 -> tensor<128xi32>
      %109 = arith.addi %0, %108 : tensor<128xi32>
      %110 = arith.shrui %109, %cst_2 : tensor<128xi32>
      %111 = arith.xori %109, %110 : tensor<128xi32>
      %112 = arith.muli %111, %cst : tensor<128xi32>
      %113 = arith.shrui %112, %cst_0 : tensor<128xi32>
      %114 = arith.xori %112, %113 : tensor<128xi32>
      %115 = arith.muli %114, %cst_1 : tensor<128xi32>
      %116 = arith.shrui %115, %cst_0 : tensor<128xi32>
      %117 = arith.xori %115, %116 : tensor<128xi32>
      %118 = tt.splat %98 : i32 -> tensor<128xi32>
      %119 = arith.xori %118, %117 : tensor<128xi32>
      %120 = arith.muli %119, %cst : tensor<128xi32>
      %121 = arith.shrui %120, %cst_0 : tensor<128xi32>
      %122 = arith.xori %120, %121 : tensor<128xi32>
      %123 = arith.muli %122, %cst_1 : tensor<128xi32>
      %124 = tt.splat %threshold : i32 -> tensor<128xi32>
      %125 = arith.cmpi uge, %123, %124 : tensor<128xi32>
      %126 = tt.splat %factor : f32 -> tensor<128xf32>
      %127 = arith.mulf %77, %126 : tensor<128xf32>
      %128 = arith.select %125, %127, %cst_4 : tensor<128xi1>, tensor<128xf32>
      %129 = arith.truncf %128 : tensor<128xf32> to tensor<128x$float>
      %130 = tt.splat %d_y : !tt.ptr<$float> -> tensor<128x!tt.ptr<$float>>
      %131 = tt.addptr %130, %44 : tensor<128x!tt.ptr<$float>>, tensor<128xi64>
      tt.store %131, %129, %2 : tensor<128x!tt.ptr<$float>>
      %132 = arith.extf %129 : tensor<128x$float> to tensor<128xf32>
      %133 = arith.select %2, %132, %cst_4 : tensor<128xi1>, tensor<128xf32>
      %134 = arith.addf %arg16, %133 : tensor<128xf32>
      scf.yield %63, %64, %134 : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    }
    %29 = arith.muli %3, %c3_i32 : i32
    %30 = arith.muli %29, %hidden : i32
    %31 = tt.splat %30 : i32 -> tensor<128xi32>
    %32 = arith.addi %31, %0 : tensor<128xi32>
    %33 = tt.splat %sums : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %34 = tt.addptr %33, %32 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    tt.store %34, %28#0, %2 : tensor<128x!tt.ptr<f32>>
    %35 = tt.addptr %34, %1 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    tt.store %35, %28#1, %2 : tensor<128x!tt.ptr<f32>>
    %36 = arith.muli %hidden, %c2_i32 : i32
    %37 = tt.splat %36 : i32 -> tensor<128xi32>
    %38 = tt.addptr %34, %37 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    tt.store %38, %28#2, %2 : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
